// SPDX-License-Identifier: Apache-2.0
// A matrix whose columns are summed one after the other, the mass of bodies of 128 bytes in a random order, a list,
// a hash map, and an enum.
mod grid {
    pub struct Matrix<T> {
        rows: usize,
        columns: usize,
        cells: Vec<T>,
    }

    impl<T: Copy + Into<f64>> Matrix<T> {
        pub fn new(rows: usize, columns: usize, value: T) -> Matrix<T> {
            Matrix { rows, columns, cells: vec![value; rows * columns] } // cells
        }

        #[inline(never)]
        pub fn sum_columns(&self) -> f64 {
            let mut sum = 0.0;
            for column in 0..self.columns {
                for row in 0..self.rows {
                    sum += self.cells[row * self.columns + column].into(); // columns
                }
            }
            sum
        }
    }
}

mod bodies {
    pub struct Body {
        pub place: [f64; 8],
        pub mass: f64,
        pub speed: [f64; 7],
    }

    pub fn make(n: usize) -> Vec<Body> {
        let mut all = Vec::with_capacity(n); // bodies
        for i in 0..n {
            all.push(Body { place: [0.0; 8], mass: i as f64, speed: [1.0; 7] });
        }
        all
    }

    #[inline(never)]
    pub fn total_mass(all: &[Body]) -> f64 {
        let (mut total, mut at) = (0.0, 0);
        for _ in 0..all.len() {
            total += all[at].mass; // mass
            at = (at * 5 + 12345) % all.len();
        }
        total
    }
}

mod links {
    pub struct Link {
        pub text: [u8; 120],
        pub next: Option<Box<Link>>,
    }

    pub fn make(n: usize) -> Option<Box<Link>> {
        let mut first = None;
        for _ in 0..n {
            first = Some(Box::new(Link { text: [1; 120], next: first }));
        }
        first
    }

    #[inline(never)]
    pub fn length(first: &Option<Box<Link>>) -> usize {
        let (mut n, mut at) = (0, first);
        while let Some(link) = at {
            at = &link.next;
            n += 1;
        }
        n
    }
}

mod prices {
    use std::collections::HashMap;

    pub struct Entry {
        pub price: u64,
        pub text: [u8; 112],
    }

    #[inline(never)]
    pub fn make(n: u64) -> HashMap<u64, Entry> {
        let mut all = HashMap::with_capacity(n as usize);
        for i in 0..n {
            all.insert(i * 7919, Entry { price: i, text: [1; 112] });
        }
        all
    }

    #[inline(never)]
    pub fn total(all: &HashMap<u64, Entry>) -> u64 {
        let (mut sum, mut at, n) = (0, 0, all.len() as u64);
        for _ in 0..n {
            sum += all[&(at * 7919)].price; // price
            at = (at * 5 + 12345) % n;
        }
        sum
    }
}

mod shapes {
    pub enum Shape {
        Circle { radius: f64, label: [u8; 112] },
        Square { side: f64, label: [u8; 112] },
    }

    #[inline(never)]
    pub fn make(n: usize) -> Vec<Option<Shape>> {
        let mut all = Vec::with_capacity(n);
        for i in 0..n {
            all.push(Some(match i % 3 {
                0 => Shape::Circle { radius: i as f64, label: [1; 112] },
                _ => Shape::Square { side: i as f64, label: [1; 112] },
            }));
        }
        all
    }

    #[inline(never)]
    pub fn area(all: &[Option<Shape>]) -> f64 {
        let (mut sum, mut at) = (0.0, 0);
        for _ in 0..all.len() {
            sum += match &all[at] {
                Some(Shape::Circle { radius, label }) => radius * label[0] as f64,
                Some(Shape::Square { side, label }) => side * side * label[1] as f64,
                None => 0.0,
            };
            at = (at * 5 + 12345) % all.len();
        }
        sum
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let rounds: usize = arguments[2].parse().unwrap();
    let mut total = 0.0;
    if arguments[1] == "columns" {
        let matrix = grid::Matrix::new(1024, 1024, 1.5f64);
        for _ in 0..rounds {
            total += matrix.sum_columns();
        }
    } else if arguments[1] == "links" {
        let mut first = links::make(16384);
        for _ in 0..rounds {
            total += links::length(&first) as f64;
        }
        // Not by recursion.
        while let Some(mut link) = first {
            total += link.text[0] as f64;
            first = link.next.take();
        }
    } else if arguments[1] == "prices" {
        let all = prices::make(16384);
        for _ in 0..rounds {
            total += prices::total(&all) as f64;
        }
        total += all[&0].text[3] as f64;
    } else if arguments[1] == "shapes" {
        let all = shapes::make(16384);
        for _ in 0..rounds {
            total += shapes::area(&all);
        }
    } else {
        let all = bodies::make(16384);
        for _ in 0..rounds {
            total += bodies::total_mass(&all);
        }
        total += all[0].place[1] + all[1].speed[1];
    }
    println!("{}", total);
}
