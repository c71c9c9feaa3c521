use iliad::task::kit::*;
use iliad::task::regex::family::RegexFamily;
use std::path::PathBuf;
fn main() -> anyhow::Result<()> {
    let a: Vec<String> = std::env::args().collect();
    let preset = a[2].clone();
    let over: Vec<String> = a[4..].to_vec();
    let out = PathBuf::from(&a[3]);
    let config = TaskKit::presets(&RegexFamily).into_iter().find(|p| p.name == preset).unwrap().config;
    let get = |k: &str, d: u64| {
        over.iter().find_map(|o| o.strip_prefix(&format!("--{k}="))).map_or(d, |v| v.parse().unwrap())
    };
    let sets: Vec<String> = over.iter().filter(|o| !o.starts_with("--")).cloned().collect();
    let config = config.with_overrides(&sets)?;
    let device = iliad::nn::device::open("auto")?;
    if get("tf32", 0) == 1 {
        #[cfg(feature = "cuda")]
        candle_core::cuda::set_gemm_reduced_precision_f32(true);
    }
    let t0 = std::time::Instant::now();
    let progress = |w: &str, s: f64| println!("{:.1}s {:.0}% {w}", t0.elapsed().as_secs_f64(), 100. * s);
    match a[1].as_str() {
        "teacher" => {
            let r = TaskKit::train_teacher(
                &RegexFamily,
                &TeacherTraining {
                    config: &config,
                    executor_updates: get("eu", 1000),
                    describer_updates: get("du", 1000),
                    batch: get("batch", 128) as usize,
                    evaluate_every: get("every", 100),
                    output: &out,
                    half: true,
                    seconds: get("seconds", 0) as f64,
                    device: &device,
                    progress: &progress,
                },
            )?;
            println!("{r:?}");
        }
        "pretrain" => TaskKit::pretrain(&RegexFamily, &config, &out, &device, &progress)?,
        "train" => {
            let launch = iliad::trainer::Launch {
                id: "dev".into(),
                config,
                folder: out,
                device,
                store: None,
                teacher: None,
                listener: Some(Box::new(move |e| match &**e {
                    iliad::run::Event::Point(p) => {
                        println!("{:.1}s {}", t0.elapsed().as_secs_f64(), serde_json::to_string(p).unwrap())
                    }
                    iliad::run::Event::Episode(p) => println!("   {} | {} | {}", p.request, p.summary, p.description),
                    iliad::run::Event::Log { message } => println!("{message}"),
                    _ => {}
                })),
            };
            let (_h, t) = iliad::trainer::spawn(&RegexFamily, launch)?;
            println!("{:?}", t.join().unwrap()?);
        }
        "parity" => {
            for f in ["regex_student", "regex_describer"] {
                println!("{:?}", iliad::model::parity::check(&out.join(format!("{f}.safetensors")), &device)?);
            }
        }
        _ => panic!(),
    }
    Ok(())
}
