use iliad::task::nav::house::House;
#[test]
fn stats() {
    let t = std::time::Instant::now();
    let houses: Vec<House> = (0..40).map(House::generate).collect();
    println!("{:?}", t.elapsed());
    let mut ns: Vec<usize> = houses.iter().map(|h| h.stands.len()).collect();
    let (n, e): (usize, usize) = (ns.iter().sum(), houses.iter().map(|h| h.edges.len()).sum());
    ns.sort();
    println!("{ns:?} mean {} degree {}", n as f64 / 40.0, 2.0 * e as f64 / n as f64);
    let mut ls: Vec<f64> = houses
        .iter()
        .flat_map(|h| {
            let g = h.graph().unwrap();
            h.edges.iter().map(move |(a, b)| g.edge_length(*a, *b)).collect::<Vec<_>>()
        })
        .collect();
    ls.sort_by(f64::total_cmp);
    println!("{:?}", [1, 5, 25, 50, 75, 95, 99].map(|q| ls[ls.len() * q / 100]));
    println!("items {}", houses.iter().map(|h| h.items.len()).sum::<usize>() / 40);
}
#[test]
fn say() {
    use iliad::rng::stream;
    use iliad::task::nav::marginal::Marginal;
    use iliad::task::nav::phrasing::{requests, trace::Tracer};
    use rand::RngExt;
    let (mut n, mut words, mut alike, mut astray, mut bad, mut others) = (0, 0, 0.0, 0.0, 0, 0);
    let mut vocab = std::collections::HashSet::new();
    let t = std::time::Instant::now();
    for seed in 0..6 {
        let house = House::generate(seed);
        let graph = house.graph().unwrap();
        let tracer = Tracer::look(&house, &graph);
        let mut chance = stream(seed, "t", 0);
        println!("house {seed} {:?}", t.elapsed());
        for k in 0..50 {
            let start = chance.random_range(0..graph.len());
            let heading = chance.random_range(0..12u8);
            let path = Marginal::ShortestPaths.sample(&graph, start, &mut chance);
            if path.len() < 5 {
                continue;
            }
            for r in requests(&tracer, heading, &path, &mut chance) {
                if k < 6 {
                    println!("{path:?} {:?}\n   {}", r.ambiguity, r.text);
                }
                n += 1;
                words += r.text.split(' ').count();
                r.text.split(' ').for_each(|w| {
                    vocab.insert(w.trim_matches(['.', ',']).to_lowercase());
                });
                others += r.ambiguity.others;
                if r.ambiguity.others > 0 {
                    alike += r.ambiguity.alike as f64 / r.ambiguity.others as f64;
                    astray += r.ambiguity.astray as f64 / r.ambiguity.others as f64;
                    bad += usize::from(r.ambiguity.astray > 0);
                }
            }
        }
    }
    println!(
        "{n} requests, words {} alike {} astray {} some astray {} vocab {} others {} {:?}",
        words as f64 / n as f64,
        alike / n as f64,
        astray / n as f64,
        bad as f64 / n as f64,
        vocab.len(),
        others / n,
        t.elapsed()
    );
}
