//! How a function of tensors travels: as its name and its parameters, since closures cannot.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan, ScalarUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

/// Makes a function of its name and its parameters.
pub(crate) type Make = fn(&str, &[u8]) -> Result<ScalarUDF>;

/// Ballista's own codecs, and those functions besides. One for each process: each task of a query
/// decodes its plan, and is to have the function that the tasks before it had, with its state.
pub(crate) struct Codec {
    make: Make,
    known: Mutex<Vec<Known>>,
    logical: BallistaLogicalExtensionCodec,
    physical: BallistaPhysicalExtensionCodec,
}

struct Known {
    udf: Arc<ScalarUDF>,
    parameters: Vec<u8>,
}

impl Codec {
    pub(crate) fn new(make: Make) -> Arc<Self> {
        Arc::new(Self {
            make,
            known: Mutex::default(),
            logical: BallistaLogicalExtensionCodec::default(),
            physical: BallistaPhysicalExtensionCodec::default(),
        })
    }

    /// The function of this name with these parameters: one, however often it is asked for.
    pub(crate) fn function(&self, name: &str, parameters: &[u8]) -> Result<Arc<ScalarUDF>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&Known| known.udf.name() == name && known.parameters == parameters;
        if let Some(known) = known.iter().find(is_it) {
            return Ok(Arc::clone(&known.udf));
        }
        let udf = Arc::new((self.make)(name, parameters)?);
        known.push(Known { udf: Arc::clone(&udf), parameters: parameters.to_vec() });
        Ok(udf)
    }

    /// The parameters of a function, if it is one of these; others go by their name alone.
    fn encode(&self, udf: &ScalarUDF, buffer: &mut Vec<u8>) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter().find(|known| *known.udf == *udf) {
            buffer.extend(&known.parameters);
        }
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}

/// Between the scheduler and the executors.
impl PhysicalExtensionCodec for Codec {
    fn try_encode_udf(&self, node: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.encode(node, buffer);
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.function(name, buffer)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.physical.try_encode(node, buffer, converter)
    }

    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.physical.try_decode(buffer, inputs, context, converter)
    }
}

/// Between the client and the scheduler.
impl LogicalExtensionCodec for Codec {
    fn try_encode_udf(&self, node: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.encode(node, buffer);
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.function(name, buffer)
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        self.logical.try_encode(node, buffer)
    }

    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[LogicalPlan],
        context: &TaskContext,
    ) -> Result<Extension> {
        self.logical.try_decode(buffer, inputs, context)
    }

    fn try_encode_table_provider(
        &self,
        table: &TableReference,
        node: Arc<dyn TableProvider>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        self.logical.try_encode_table_provider(table, node, buffer)
    }

    fn try_decode_table_provider(
        &self,
        buffer: &[u8],
        table: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        self.logical.try_decode_table_provider(buffer, table, schema, context)
    }

    fn try_encode_file_format(
        &self,
        buffer: &mut Vec<u8>,
        node: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        self.logical.try_encode_file_format(buffer, node)
    }

    fn try_decode_file_format(
        &self,
        buffer: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.logical.try_decode_file_format(buffer, context)
    }
}
