//! Figures that the system gives of this process and of its GPUs. One that it does not give is left out.

use super::Exposition;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a reading of the GPUs is good for.
const GPU_READING: Duration = Duration::from_secs(10);

/// How long the driver's program may take.
const GPU_PATIENCE: Duration = Duration::from_secs(3);

/// The figures of `/proc` that Prometheus's own libraries give under these names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Process {
    cpu_seconds: Option<f64>,
    memory_bytes: Option<f64>,
    threads: Option<f64>,
    open_files: Option<f64>,
    most_files: Option<f64>,
}

impl Process {
    fn read() -> Process {
        let text = |file: &str| std::fs::read_to_string(Path::new("/proc/self").join(file)).unwrap_or_default();
        let open = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64);
        Process { open_files: open, ..Process::of(&text("stat"), &text("status"), &text("limits")) }
    }

    fn of(stat: &str, status: &str, limits: &str) -> Process {
        /// The unit of times in `/proc` on every Linux that this program runs on.
        const TICKS: f64 = 100.0;
        // The name of the program, in brackets, may hold anything.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        let line = |text: &str, name: &str, at: usize| -> Option<f64> {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().nth(at)?.parse().ok()
        };
        Process {
            cpu_seconds: number(11).zip(number(12)).map(|(user, system)| (user + system) / TICKS),
            memory_bytes: line(status, "VmRSS:", 0).map(|kilobytes| kilobytes * 1024.0),
            threads: line(status, "Threads:", 0),
            open_files: None,
            most_files: line(limits, "Max open files", 0),
        }
    }
}

/// A GPU as the driver reports it.
#[derive(Clone, Debug, PartialEq)]
struct Gpu {
    number: String,
    busy: f64,
    used_bytes: f64,
    bytes: f64,
}

/// Reads `index, utilization.gpu, memory.used, memory.total`, a line for each GPU, in percent and MiB.
fn gpus(text: &str) -> Vec<Gpu> {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        let mebibytes = |at: usize| Some(number(at)? * 1024.0 * 1024.0);
        Some(Gpu {
            number: (*fields.first()?).to_owned(),
            busy: number(1)? / 100.0,
            used_bytes: mebibytes(2)?,
            bytes: mebibytes(3)?,
        })
    };
    text.lines().filter_map(read).collect()
}

/// The latest reading of the GPUs, and when it was made.
static GPUS: Mutex<Option<(Instant, Vec<Gpu>)>> = Mutex::new(None);

async fn read_gpus() -> Vec<Gpu> {
    let kept = |now: Instant| {
        let kept = GPUS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.as_ref().filter(|(read, _)| now.duration_since(*read) < GPU_READING).map(|(_, gpus)| gpus.clone())
    };
    if let Some(gpus) = kept(Instant::now()) {
        return gpus;
    }
    let mut program = tokio::process::Command::new("nvidia-smi");
    program.args(["--query-gpu=index,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits"]);
    program.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null()).kill_on_drop(true);
    let told = tokio::time::timeout(GPU_PATIENCE, program.output()).await;
    let found = match told {
        Ok(Ok(told)) if told.status.success() => gpus(&String::from_utf8_lossy(&told.stdout)),
        _ => Vec::new(),
    };
    *GPUS.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((Instant::now(), found.clone()));
    found
}

/// Writes the figures of the process, and of the GPUs where runs use one.
pub(crate) async fn write(page: &mut Exposition, with_gpus: bool) {
    let Process { cpu_seconds, memory_bytes, threads, open_files, most_files } = Process::read();
    page.single("process_cpu_seconds_total", "counter", "Processor time of the process.", cpu_seconds);
    page.single("process_resident_memory_bytes", "gauge", "Memory that the process occupies.", memory_bytes);
    page.single("process_threads", "gauge", "Threads of the process.", threads);
    page.single("process_open_fds", "gauge", "Open files and connections.", open_files);
    page.single("process_max_fds", "gauge", "Most files and connections that may be open.", most_files);
    let gpus = if with_gpus { read_gpus().await } else { Vec::new() };
    if gpus.is_empty() {
        return;
    }
    type Figure = fn(&Gpu) -> f64;
    let figures: [(&str, &str, Figure); 3] = [
        ("iliad_gpu_utilization_ratio", "Share of time in which the GPU was busy.", |gpu| gpu.busy),
        ("iliad_gpu_memory_used_bytes", "Memory of the GPU that is in use.", |gpu| gpu.used_bytes),
        ("iliad_gpu_memory_bytes", "Memory of the GPU.", |gpu| gpu.bytes),
    ];
    for (name, help, figure) in figures {
        page.family(name, "gauge", help);
        for gpu in &gpus {
            page.sample(name, &[("gpu", &gpu.number)], figure(gpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_read_from_proc() {
        let stat = "17 (a) b) S 1 17 17 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 100 1000 200";
        let status = "Name:\tiliad\nVmRSS:\t    2048 kB\nThreads:\t9\n";
        let limits = "Limit   Soft Limit   Hard Limit   Units\nMax open files            1024      4096      files\n";
        let read = Process::of(stat, status, limits);
        assert_eq!((read.cpu_seconds, read.memory_bytes), (Some(3.0), Some(2_097_152.0)));
        assert_eq!((read.threads, read.most_files), (Some(9.0), Some(1024.0)));
        assert_eq!(Process::of("", "", ""), Process::default());
    }

    #[test]
    fn gpus_are_read_from_the_drivers_program() {
        let read = gpus("0, 37, 1024, 143771\n1, 0, 4, 143771\nunreadable\n");
        assert_eq!(read.len(), 2);
        assert_eq!(
            read[0],
            Gpu { number: "0".into(), busy: 0.37, used_bytes: 1_073_741_824.0, bytes: 150_754_820_096.0 }
        );
    }
}
