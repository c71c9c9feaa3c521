//! Models that come with the program, and files that stand in for them.

/// Models that come with the program.
#[derive(rust_embed::RustEmbed)]
#[folder = "model_store/shipped"]
struct Shipped;

/// Names and bytes of all models that come with the program.
pub fn shipped_models() -> Vec<(String, Vec<u8>)> {
    Shipped::iter()
        .filter(|name| name.ends_with(".safetensors"))
        .filter_map(|name| Some((name.to_string(), Shipped::get(&name)?.data.into_owned())))
        .collect()
}

/// Bytes of a model file that is named in a configuration: `shipped` takes `shipped_name` from the program, `none`
/// gives `None`, anything else is a path.
pub fn model_file(setting: &str, shipped_name: &str) -> anyhow::Result<Option<(std::path::PathBuf, Vec<u8>)>> {
    match setting {
        "none" => Ok(None),
        "shipped" => Ok(Shipped::get(shipped_name)
            .map(|f| (std::path::Path::new("model_store/shipped").join(shipped_name), f.data.into_owned()))),
        path => {
            let bytes = std::fs::read(path).map_err(|e| anyhow::anyhow!("cannot read the model file {path}: {e}"))?;
            Ok(Some((path.into(), bytes)))
        }
    }
}
