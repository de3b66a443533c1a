//! A model in a query on several machines: `TensorUdf` on Ballista.
//!
//!     cargo run --manifest-path examples/ballista/Cargo.toml
//!
//! It starts a scheduler and two executors, processes of their own, and asks them what a session in this
//! process answers too. `cargo run ... -- scheduler PORT` and `... -- executor SCHEDULER_PORT PORT` start
//! one alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_dlpack_datafusion::BoxError;
use ballista::extension::SessionContextExt;
use ballista_core::extension::SessionConfigExt;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::start_server;
use codec::Codec;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

mod codec;
mod model;

/// The cast is for Ballista, whose keys that are dictionaries become strings on the way, which the stage
/// that sorts them does not expect.
const QUERY: &str = "SELECT cast(carrier AS varchar) AS carrier, count(*) AS flights, \
     round(avg(predict_delay(distance, hour, month)), 2) AS delay \
     FROM flights GROUP BY 1 ORDER BY 1";
const EXECUTORS: usize = 2;
const HOST: &str = "127.0.0.1";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => client().await,
        ["scheduler", port] => scheduler(port.parse()?).await,
        ["executor", scheduler, port] => executor(scheduler.parse()?, port.parse()?).await,
        _ => Err("nothing, `scheduler PORT` or `executor SCHEDULER_PORT PORT`".into()),
    }
}

async fn scheduler(port: u16) -> Result<(), BoxError> {
    let codec = Codec::new(model::make);
    let config = SchedulerConfig {
        bind_host: HOST.into(),
        bind_port: port,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        override_logical_codec: Some(codec.clone()),
        override_physical_codec: Some(codec),
        min_ready_executors: EXECUTORS,
        ..Default::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Ok(start_server(cluster, address, Arc::new(config)).await?)
}

async fn executor(scheduler_port: u16, port: u16) -> Result<(), BoxError> {
    let codec = Codec::new(model::make);
    let config = ExecutorProcessConfig {
        bind_host: HOST.into(),
        port,
        grpc_port: free_port()?,
        scheduler_host: HOST.into(),
        scheduler_port,
        scheduler_connect_timeout_seconds: 60,
        vcores: 1,
        override_logical_codec: Some(codec.clone()),
        override_physical_codec: Some(codec),
        ..Default::default()
    };
    Ok(start_executor_process(Arc::new(config)).await?)
}

async fn client() -> Result<(), BoxError> {
    let scheduler_port = free_port()?;
    let scheduler = Process::start(&["scheduler".into(), scheduler_port.to_string()])?;
    let executor = || {
        let ports = [scheduler_port.to_string(), free_port()?.to_string()];
        Process::start(&["executor".into(), ports[0].clone(), ports[1].clone()])
    };
    let executors = [executor()?, executor()?];
    wait_until_ready(scheduler_port).await?;

    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data"));
    let weights = data.join("delay.json");
    let codec = Codec::new(model::make);
    let predict_delay =
        codec.function(model::NAME, weights.to_str().ok_or("a path in UTF-8")?.as_bytes())?;
    let config = SessionConfig::new_with_ballista()
        .with_ballista_logical_extension_codec(codec.clone())
        .with_ballista_physical_extension_codec(codec)
        .with_target_partitions(4 * EXECUTORS)
        // So that a small file is several tasks.
        .set_usize("datafusion.optimizer.repartition_file_min_size", 0);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let url = format!("df://{HOST}:{scheduler_port}");
    let cluster = SessionContext::remote_with_state(&url, state).await?;

    let alone = SessionContext::new();
    let mut answers = Vec::new();
    for (context, where_) in [(&cluster, "two executors"), (&alone, "this process")] {
        context.register_udf(predict_delay.as_ref().clone());
        let flights = data.join("flights.parquet");
        let flights = flights.to_str().ok_or("a path in UTF-8")?;
        context.register_parquet("flights", flights, ParquetReadOptions::default()).await?;
        for _ in 0..2 {
            let start = Instant::now();
            answers.push(context.sql(QUERY).await?.to_string().await?);
            println!("{where_}: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
        }
    }
    println!("{}", answers[0]);
    if answers.iter().any(|answer| *answer != answers[0]) {
        return Err(format!("in this process it is\n{}", answers[2]).into());
    }

    drop(scheduler);
    for executor in executors {
        let id = executor.0.id();
        let loads = executor.stop()?.into_iter().filter(|line| line.starts_with("loads")).count();
        println!("executor {id} loaded the model {loads} times");
        if loads != 1 {
            return Err("each executor is to load the model, once".into());
        }
    }
    Ok(())
}

/// Another process of this program, which ends with this one's interest in it.
struct Process(Child);

impl Process {
    fn start(arguments: &[String]) -> Result<Self, BoxError> {
        let program = std::env::current_exe()?;
        Ok(Self(Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?))
    }

    /// Ends it; what it has printed.
    fn stop(mut self) -> Result<Vec<String>, BoxError> {
        self.0.kill()?;
        let output = self.0.stdout.take().ok_or("it was piped")?;
        Ok(BufReader::new(output).lines().collect::<Result<_, _>>()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that is free now. If another process takes it before it is used, the program fails.
fn free_port() -> Result<u16, BoxError> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The scheduler says so once as many executors as it waits for have come.
async fn wait_until_ready(port: u16) -> Result<(), BoxError> {
    let ready = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        write!(stream, "GET /readyz HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    };
    for _ in 0..600 {
        if ready().unwrap_or(false) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("the executors have not come within a minute".into())
}
