//! Graphs, actions and metrics of NAV: cases worked out by hand, a golden file made by an independent program
//! (tests/fixtures/nav/make_golden.py), properties, and the real houses where they are at hand.

use iliad::task::nav::action::{
    Pose, VIEW_STEP, actions, after, heading_index, poses, step, view_direction, view_toward,
};
use iliad::task::nav::graph::{Graph, Viewpoint, load_graphs};
use iliad::task::nav::metric::{dtw, ndtw, path_length, score, sdtw, without_loops};
use proptest::prelude::*;
use serde_json::Value;
use std::f64::consts::PI;
use std::path::PathBuf;

fn graph(points: &[[f64; 3]], edges: &[(usize, usize)]) -> Graph {
    let viewpoints = points.iter().enumerate().map(|(i, p)| Viewpoint { id: format!("v{i}"), position: *p }).collect();
    Graph::new(viewpoints, edges).expect("a sound graph")
}

/// A, B, C, D on a line, 2 m apart, and E 2 m beside C.
fn line() -> Graph {
    let points = [[0.0, 0.0, 1.5], [2.0, 0.0, 1.5], [4.0, 0.0, 1.5], [6.0, 0.0, 1.5], [4.0, 2.0, 1.5]];
    graph(&points, &[(0, 1), (1, 2), (2, 3), (2, 4)])
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const E: usize = 4;

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() < 1e-9
}

#[test]
fn distances_and_paths_of_a_small_graph() {
    let g = line();
    assert_eq!((g.distance(A, E), g.distance(E, D), g.edges(A, E)), (6.0, 4.0, Some(3)));
    assert_eq!(g.shortest_path(A, E), Some(vec![A, B, C, E]));
    assert_eq!((g.shortest_path(B, B), g.step_toward(B, B)), (Some(vec![B]), None));
    assert_eq!((g.neighbours(C), g.adjacent(C, D), g.adjacent(A, C)), (&[1, 3, 4][..], true, false));
}

#[test]
fn ties_are_decided_by_edges_and_then_by_order() {
    // A square with a centre on one diagonal: three ways of 2 m from 0 to 3 or nearly so.
    let square = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]];
    let g = graph(&square, &[(0, 2), (2, 3), (3, 1), (1, 0)]);
    assert_eq!(g.shortest_path(0, 3), Some(vec![0, 1, 3]));
    assert_eq!(g.shortest_path(3, 0), Some(vec![3, 1, 0]));
    // Edges of no length neither loop nor count.
    let g = graph(&[[0.0; 3], [0.0; 3], [1.0, 0.0, 0.0]], &[(0, 1), (1, 2), (0, 2)]);
    assert_eq!(
        (g.distance(0, 1), g.shortest_path(0, 1), g.shortest_path(0, 2)),
        (0.0, Some(vec![0, 1]), Some(vec![0, 2]))
    );
    // A point half way on a straight line: the direct edge has fewer edges.
    let g = graph(&[[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], &[(0, 1), (1, 2), (0, 2)]);
    assert_eq!((g.edges(0, 2), g.distance(0, 2)), (Some(1), 2.0));
}

#[test]
fn separate_parts_have_no_path() {
    let g = graph(&[[0.0; 3], [1.0, 0.0, 0.0], [9.0, 0.0, 0.0]], &[(0, 1)]);
    assert_eq!((g.distance(0, 2), g.edges(0, 2), g.shortest_path(0, 2)), (f64::INFINITY, None, None));
    let s = score(&g, &[0, 1], &[2]);
    assert_eq!((s.success, s.distance, s.spl, s.ndtw, s.sdtw), (false, f64::INFINITY, 0.0, 0.0, 0.0));
}

#[test]
fn unsound_graphs_are_refused() {
    let at = |id: &str, x: f64| Viewpoint { id: id.into(), position: [x, 0.0, 0.0] };
    let refused = |viewpoints, edges: &[(usize, usize)]| Graph::new(viewpoints, edges).expect_err("refused");
    assert!(refused(vec![at("a", 0.0), at("a", 1.0)], &[]).contains("a comes twice"));
    assert!(refused(vec![at("a", f64::NAN)], &[]).contains("no finite position"));
    assert!(refused(vec![at("a", 0.0)], &[(0, 1)]).contains("no viewpoint"));
    assert!(refused(vec![at("a", 0.0)], &[(0, 0)]).contains("leads back"));
    assert!(refused(vec![at("a", 0.0), at("b", 1e300)], &[(0, 1)]).contains("longer than"));
    // The paths between so many would take gigabytes: refused before they are made room for.
    let crowd: Vec<Viewpoint> = (0..60_000).map(|n| at(&n.to_string(), 0.0)).collect();
    assert!(refused(crowd, &[]).contains("60000 viewpoints"));
}

#[test]
fn metrics_by_hand() {
    let g = line();
    let gold = [A, B, C, D];
    // One step short: D aligns with C, 2 m off. DTW = 2, |R| = 4, threshold 3.
    let s = score(&g, &[A, B, C], &gold);
    assert!(s.success && s.distance == 2.0 && s.length == 4.0 && s.spl == 1.0);
    assert!(close(dtw(&g, &[A, B, C], &gold), 2.0) && close(s.ndtw, (-1.0f64 / 6.0).exp()) && close(s.sdtw, s.ndtw));
    // The wrong turn: E is 4 m from D by way of C.
    let s = score(&g, &[A, B, C, E], &gold);
    assert!(!s.success && s.distance == 4.0 && s.spl == 0.0 && s.sdtw == 0.0);
    assert!(close(s.ndtw, (-4.0f64 / 12.0).exp()));
    // A detour: 10 m instead of 6; only E costs, 2 m from C.
    let s = score(&g, &[A, B, C, E, C, D], &gold);
    assert!(s.success && close(s.spl, 0.6) && close(s.length, 10.0) && close(s.ndtw, (-2.0f64 / 12.0).exp()));
    // Nobody moves, and nobody should.
    let s = score(&g, &[A], &[A]);
    assert!(s.success && s.spl == 1.0 && s.ndtw == 1.0 && s.sdtw == 1.0);
    // Nobody moves but should: A stands for all four, 0 + 2 + 4 + 6.
    assert!(close(ndtw(&g, &[A], &gold), (-1.0f64).exp()) && sdtw(&g, &[A], &gold) == 0.0);
    // A repeated viewpoint costs nothing; the gold path itself is perfect.
    assert!(ndtw(&g, &[A, A, B, C, D, D], &gold) == 1.0 && path_length(&g, &[A, A, B]) == 2.0);
}

#[test]
fn three_metres_are_within_three_metres() {
    let g = graph(&[[0.0; 3], [3.0, 0.0, 0.0], [6.001, 0.0, 0.0]], &[(0, 1), (1, 2)]);
    assert!(score(&g, &[0], &[1]).success && !score(&g, &[2], &[1]).success);
}

#[test]
fn loops_are_cut_out() {
    assert_eq!(without_loops(&[A, B, C, E, C, D]), [A, B, C, D]);
    assert_eq!(without_loops(&[A, B, A]), [A]);
    assert_eq!(without_loops(&[A, B, C, B, A, B, E]), [A, B, E]);
    assert_eq!(without_loops(&[A, A, B]), [A, B]);
    assert!(without_loops(&[]).is_empty());
}

#[test]
fn headings_and_views_follow_the_convention() {
    // From C: D lies along +x (90°), B behind it (270°), E along +y (0°).
    let g = line();
    let facing_x = actions(&g, Pose { viewpoint: C, heading: 3 });
    let told: Vec<(usize, f64, u8)> = facing_x.iter().map(|a| (a.viewpoint, a.rel_heading, a.view)).collect();
    assert_eq!(told[0], (D, 0.0, 15));
    assert_eq!((told[1].0, told[1].2), (E, 12));
    assert!(close(told[1].1, -PI / 2.0), "to the left is negative");
    assert_eq!((told[2].0, told[2].2), (B, 21));
    assert!(close(told[2].1, PI), "straight behind is π, not −π");
    assert_eq!(after(&facing_x[1]), Pose { viewpoint: E, heading: 0 });
    assert_eq!(step(&g, C, B), Pose { viewpoint: B, heading: 9 });
    assert_eq!(poses(&g, 5, &[A, B, C, E]).iter().map(|p| p.heading).collect::<Vec<_>>(), [5, 3, 3, 0]);
    assert_eq!([0.0, 0.26, 0.27, 6.2, -0.3, 2.0 * PI].map(heading_index), [0, 0, 1, 0, 11, 0]);
    assert_eq!((view_toward(0.0, 0.3), view_toward(0.0, 1.4), view_toward(-0.1, -1.0)), (24, 24, 0));
    for view in 0..36 {
        let (heading, elevation) = view_direction(view);
        assert_eq!(view_toward(heading, elevation), view);
    }
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

#[test]
fn an_independent_program_says_the_same() {
    let (mut scores, mut moves) = (0, 0);
    for case in include_str!("../fixtures/nav/golden.jsonl").lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        let points: Vec<[f64; 3]> = serde_json::from_value(case["points"].clone()).unwrap();
        let edges: Vec<(usize, usize)> = serde_json::from_value(case["edges"].clone()).unwrap();
        let g = graph(&points, &edges);
        for (a, row) in case["distances"].as_array().unwrap().iter().enumerate() {
            for (b, d) in row.as_array().unwrap().iter().enumerate() {
                assert!(close(g.distance(a, b), d.as_f64().unwrap_or(f64::INFINITY)));
                let path = g.shortest_path(a, b);
                assert_eq!(path.is_some(), d.is_number());
                if let Some(path) = path {
                    assert!(path.windows(2).all(|pair| g.adjacent(pair[0], pair[1])));
                    assert!(close(path_length(&g, &path), g.distance(a, b)));
                    assert_eq!(Some(path.len() - 1), g.edges(a, b));
                }
            }
        }
        for golden in case["scores"].as_array().unwrap() {
            let s = score(&g, &numbers(&golden["path"]), &numbers(&golden["reference"]));
            assert_eq!(golden["success"], s.success, "{golden}");
            assert!(close(golden["distance"].as_f64().unwrap_or(f64::INFINITY), s.distance), "{golden} {s:?}");
            for (name, figure) in [("spl", s.spl), ("ndtw", s.ndtw), ("sdtw", s.sdtw), ("length", s.length)] {
                assert!(close(golden[name].as_f64().unwrap(), figure), "{name} {golden} {s:?}");
            }
            scores += 1;
        }
        for golden in case["moves"].as_array().unwrap() {
            let pose = Pose {
                viewpoint: golden["viewpoint"].as_u64().unwrap() as usize,
                heading: golden["heading"].as_u64().unwrap() as u8,
            };
            let found = actions(&g, pose);
            let wanted = golden["actions"].as_array().unwrap();
            assert_eq!(found.len(), wanted.len());
            for (action, wanted) in found.iter().zip(wanted) {
                assert_eq!(action.viewpoint as u64, wanted["viewpoint"]);
                assert!(close(action.rel_heading, wanted["rel_heading"].as_f64().unwrap()), "{golden}");
                assert!(close(action.rel_elevation, wanted["rel_elevation"].as_f64().unwrap()), "{golden}");
                assert_eq!(u64::from(action.view), wanted["view"], "{golden}");
                moves += 1;
            }
        }
    }
    assert!(scores == 96 && moves == 99, "the golden file was read: {scores}, {moves}");
}

fn some_graph() -> impl Strategy<Value = Graph> {
    (2usize..9).prop_flat_map(|n| {
        let points = prop::collection::vec([0.0..9.0, 0.0..9.0, 0.0..4.0f64], n);
        let edges = prop::collection::vec((0..n, 0..n), 1..20);
        (points, edges).prop_map(|(points, edges)| {
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a != b).collect();
            graph(&points, &edges)
        })
    })
}

proptest! {
    #[test]
    fn figures_keep_their_bounds(g in some_graph(), p in prop::collection::vec(0usize..99, 1..9), r in prop::collection::vec(0usize..99, 1..9)) {
        let fold = |path: Vec<usize>| path.into_iter().map(|v| v % g.len()).collect::<Vec<_>>();
        let (p, r) = (fold(p), fold(r));
        let s = score(&g, &p, &r);
        prop_assert!([s.spl, s.ndtw, s.sdtw].iter().all(|x| (0.0..=1.0).contains(x)), "{:?}", s);
        prop_assert!(s.sdtw <= s.ndtw && s.spl <= f64::from(u8::from(s.success)));
        prop_assert_eq!(score(&g, &r, &r).ndtw, 1.0);
        prop_assert!(close(dtw(&g, &p, &r), dtw(&g, &r, &p)), "order of the two does not matter");
        let cut = without_loops(&p);
        prop_assert_eq!((cut[0], cut[cut.len() - 1]), (p[0], p[p.len() - 1]));
        prop_assert_eq!(without_loops(&cut), cut.clone());
        let distinct: std::collections::HashSet<_> = cut.iter().collect();
        prop_assert_eq!(distinct.len(), cut.len());
    }

    #[test]
    fn distances_are_a_metric(g in some_graph()) {
        let n = g.len();
        for a in 0..n {
            prop_assert_eq!(g.distance(a, a), 0.0);
            for b in 0..n {
                prop_assert_eq!(g.distance(a, b), g.distance(b, a));
                for c in 0..n {
                    prop_assert!(g.distance(a, c) <= g.distance(a, b) + g.distance(b, c) + 1e-9);
                }
            }
        }
    }

    #[test]
    fn moves_lie_where_they_say(g in some_graph(), heading in 0u8..12) {
        for viewpoint in 0..g.len() {
            let moves = actions(&g, Pose { viewpoint, heading });
            prop_assert_eq!(moves.len(), g.neighbours(viewpoint).len());
            prop_assert!(moves.windows(2).all(|m| m[0].rel_heading.abs() <= m[1].rel_heading.abs()));
            for m in moves {
                let (column, row) = view_direction(m.view);
                let off = iliad::task::nav::action::wrapped(m.rel_heading + f64::from(heading) * VIEW_STEP - column);
                prop_assert!(off.abs() <= VIEW_STEP / 2.0 + 1e-9);
                prop_assert!((m.rel_elevation - row).abs() <= VIEW_STEP / 2.0 + 1e-9 || m.rel_elevation.abs() > VIEW_STEP);
            }
        }
    }
}

fn data() -> Option<PathBuf> {
    let folder =
        std::env::var_os("ILIAD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from).join("nav");
    if !folder.exists() {
        println!("skipped: no NAV data at {}", folder.display());
        return None;
    }
    Some(folder)
}

#[test]
fn the_real_houses_and_their_action_space() {
    let Some(folder) = data() else { return };
    let graphs = load_graphs(&folder).expect("the graphs are intact");
    assert_eq!(graphs.len(), 90);
    assert_eq!(graphs.values().map(Graph::len).sum::<usize>(), 10_567);
    let degrees: Vec<usize> = graphs.values().flat_map(|g| (0..g.len()).map(|v| g.neighbours(v).len())).collect();
    assert_eq!((degrees.iter().filter(|d| **d > 0).count(), degrees.iter().max()), (10_559, Some(&13)));
    let sample = std::fs::read_to_string(folder.join("action_space_sample.json")).expect("the sample");
    let sample: Vec<Value> = serde_json::from_str(&sample).expect("JSON");
    let mut checked = 0;
    for case in &sample {
        let g = &graphs[case["scan"].as_str().unwrap()];
        let viewpoint = g.find(case["viewpoint"].as_str().unwrap()).expect("a viewpoint");
        let heading = case["heading_index"].as_u64().unwrap() as u8;
        let wanted = case["actions"].as_array().unwrap();
        assert_eq!(
            (wanted[0]["absViewIndex"].as_u64(), &wanted[0]["nextViewpointId"]),
            (Some(heading.into()), &case["viewpoint"])
        );
        let found = actions(g, Pose { viewpoint, heading });
        assert_eq!(found.len() + 1, wanted.len());
        for (action, wanted) in found.iter().zip(&wanted[1..]) {
            assert_eq!(g.id(action.viewpoint), wanted["nextViewpointId"]);
            assert_eq!(u64::from(action.view), wanted["absViewIndex"]);
            assert!((action.rel_heading - wanted["rel_heading"].as_f64().unwrap()).abs() < 1e-3);
            assert!((action.rel_elevation - wanted["rel_elevation"].as_f64().unwrap()).abs() < 1e-3);
            checked += 1;
        }
    }
    assert!(sample.len() == 28 && checked > 100, "{checked}");
}
