//! The floor plans of a house as a picture (SVG): rooms, walls, doors, windows, stairs, things and the navigation graph.

use super::walk::solid_stretches;
use super::{House, Item, OpeningKind, Rect, STOREY_HEIGHT};
use std::fmt::Write;

/// Pixels of a metre.
const SCALE: f64 = 44.0;

/// Space around a plan, in metres.
const MARGIN: f64 = 1.0;

/// Draws the storeys beside each other, north up; with the navigation graph or without.
pub fn svg(house: &House, with_graph: bool) -> String {
    let width = house.rooms.iter().map(|room| room.rect.x1).fold(0.0, f64::max);
    let depth = house.rooms.iter().map(|room| room.rect.y1).fold(0.0, f64::max);
    let column = width + 2.0 * MARGIN;
    let (w, h) = (column * house.storeys as f64 * SCALE, (depth + 2.0 * MARGIN) * SCALE);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" \
         font-family=\"sans-serif\" role=\"img\" aria-label=\"Floor plans of {}\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#fbfaf7\"/>",
        house.name
    );
    for storey in 0..house.storeys {
        let plan = Plan { west: storey as f64 * column + MARGIN, north: depth + MARGIN };
        plan.storey(&mut out, house, storey, with_graph);
    }
    out.push_str("</svg>\n");
    out
}

struct Plan {
    west: f64,
    north: f64,
}

impl Plan {
    fn x(&self, x: f64) -> f64 {
        (self.west + x) * SCALE
    }

    fn y(&self, y: f64) -> f64 {
        (self.north - y) * SCALE
    }

    fn rect(&self, out: &mut String, rect: &Rect, style: &str) {
        let (x, y) = (self.x(rect.x0), self.y(rect.y1));
        let (w, h) = (rect.width() * SCALE, rect.depth() * SCALE);
        let _ = write!(out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" {style}/>");
    }

    fn line(&self, out: &mut String, a: [f64; 2], b: [f64; 2], style: &str) {
        let (x1, y1, x2, y2) = (self.x(a[0]), self.y(a[1]), self.x(b[0]), self.y(b[1]));
        let _ = write!(out, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>");
    }

    fn text(&self, out: &mut String, at: [f64; 2], size: f64, text: &str) {
        let (x, y) = (self.x(at[0]), self.y(at[1]));
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"middle\" fill=\"#333\" \
             stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{text}</text>"
        );
    }

    fn storey(&self, out: &mut String, house: &House, storey: usize, with_graph: bool) {
        let rooms = || house.rooms.iter().filter(|room| room.storey == storey);
        for room in rooms() {
            let floor = match room.floor.material.as_str() {
                "tile" => "#e8edf0",
                "carpet" => "#efe6da",
                _ => "#ecd9b8",
            };
            self.rect(out, &room.rect, &format!("fill=\"{floor}\""));
        }
        for stairs in house.stairs.iter().filter(|s| s.storey == storey || s.storey + 1 == storey) {
            let mine = stairs.treads.iter().filter(|t| (t.top > STOREY_HEIGHT / 2.0) != (stairs.storey == storey));
            // The upper half is drawn on the upper storey as well as the lower half on the lower.
            for tread in mine {
                self.rect(out, &tread.rect, "fill=\"#d8c3a0\" stroke=\"#8a7350\" stroke-width=\"1\"");
            }
        }
        let mut items: Vec<&Item> = house.items.iter().filter(|item| house.rooms[item.room].storey == storey).collect();
        items.sort_by(|a, b| (a.bottom + a.size[2]).total_cmp(&(b.bottom + b.size[2])));
        for item in &items {
            self.item(out, item);
        }
        for (wall, a, b) in solid_stretches(house, storey, |_| true) {
            self.rect(out, &wall.stretch(a, b), "fill=\"#3b3b3b\"");
        }
        for opening in house.openings.iter().filter(|o| house.walls[o.wall].storey == storey) {
            self.opening(out, house, opening);
        }
        for item in items.iter().filter(|item| item.rect().area() > 0.35 && item.bottom < 1.0 && item.size[2] > 0.05) {
            self.text(out, item.at, 9.0, &item.kind);
        }
        for room in rooms() {
            let [x, y] = room.rect.centre();
            self.text(out, [x, y], 14.0, &room.kind);
        }
        if with_graph {
            let on = |v: usize| house.rooms[house.stands[v].room].storey == storey;
            let flat = |v: usize| [house.stands[v].position[0], house.stands[v].position[1]];
            for &(a, b) in house.edges.iter().filter(|(a, b)| on(*a) || on(*b)) {
                self.line(out, flat(a), flat(b), "stroke=\"#c2410c\" stroke-width=\"1\" opacity=\"0.6\"");
            }
            for v in (0..house.stands.len()).filter(|v| on(*v)) {
                let [x, y] = flat(v);
                let _ =
                    write!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"#c2410c\"/>", self.x(x), self.y(y));
            }
        }
        self.text(
            out,
            [house.rooms.iter().map(|r| r.rect.x1).fold(0.0, f64::max) / 2.0, -0.7],
            16.0,
            &format!("storey {storey}"),
        );
    }

    fn item(&self, out: &mut String, item: &Item) {
        let fill = paint(&item.finish.colour);
        let stroke = if item.size[2] < 0.05 { "none" } else { "#555" };
        let opacity = if item.bottom > 2.0 { 0.25 } else { 1.0 };
        let rect = item.rect();
        self.rect(out, &rect, &format!("rx=\"3\" fill=\"{fill}\" stroke=\"{stroke}\" opacity=\"{opacity}\""));
        if item.blocks() && item.kind != "railing" {
            // A stroke along the front tells which way it looks.
            let r = rect.grown(-0.05);
            let (a, b) = match item.turn % 4 {
                0 => ([r.x0, r.y1], [r.x1, r.y1]),
                1 => ([r.x1, r.y0], [r.x1, r.y1]),
                2 => ([r.x0, r.y0], [r.x1, r.y0]),
                _ => ([r.x0, r.y0], [r.x0, r.y1]),
            };
            self.line(out, a, b, "stroke=\"#555\" stroke-width=\"1\"");
        }
    }

    fn opening(&self, out: &mut String, house: &House, opening: &super::Opening) {
        let wall = &house.walls[opening.wall];
        let (k, half) = (if wall.along_x() { 0 } else { 1 }, opening.width / 2.0);
        let end = |sign: f64| {
            let mut at = opening.at;
            at[k] += sign * half;
            at
        };
        match opening.kind {
            OpeningKind::Window => self.line(out, end(-1.0), end(1.0), "stroke=\"#5aa9d6\" stroke-width=\"5\""),
            OpeningKind::GlassDoor => self.line(out, end(-1.0), end(1.0), "stroke=\"#2f7fb0\" stroke-width=\"3\""),
            OpeningKind::FrontDoor => {
                let style = format!("stroke=\"{}\" stroke-width=\"8\"", paint(&opening.finish.colour));
                self.line(out, end(-1.0), end(1.0), &style);
            }
            OpeningKind::Archway => {}
            OpeningKind::Door => {
                // The leaf stands open into one of the rooms.
                let (hinge, mut tip) = (end(-1.0), end(-1.0));
                tip[1 - k] += opening.width;
                self.line(out, hinge, tip, "stroke=\"#8b5a2b\" stroke-width=\"2\"");
            }
        }
    }
}

/// A colour of the picture for an everyday colour name.
pub fn paint(colour: &str) -> &'static str {
    match colour {
        "white" => "#f7f5f0",
        "black" => "#3a3a3a",
        "gray" => "#a3a7ab",
        "silver" => "#c9ced3",
        "brown" => "#a9794b",
        "dark" => "#6b4a2f",
        "light" => "#d9b98a",
        "beige" => "#e6d7b8",
        "red" => "#c25b4e",
        "blue" => "#6d92c2",
        "green" => "#7fa873",
        "yellow" => "#e7cb66",
        "orange" => "#dd9a55",
        "purple" => "#9a7fb5",
        "gold" => "#cfae5b",
        "clear" => "#dcecf2",
        _ => "#cccccc",
    }
}
