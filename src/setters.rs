//! The setters of options.

/// Methods that set one field of an options struct and return the struct: each line has the method with its arguments,
/// the field, and the field's new value.
macro_rules! setters {
    ($options:ident { $($(#[$doc:meta])* $setter:ident($($name:ident: $type:ty),+) $field:ident = $value:expr;)* }) => {
        impl $options {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, $($name: $type),+) -> Self {
                    self.$field = $value;
                    self
                }
            )*
        }
    };
}
pub(crate) use setters;
