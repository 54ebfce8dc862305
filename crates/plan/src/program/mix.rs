//! Drawing scenarios by weight in constant time: Walker's alias table as Vose builds it (1991).

use loadlens_base::Random;

/// A table over 0..n that draws each index by its weight.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Column i gives i when a 32-bit draw is below `keep`, else `other`.
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    keep: u64,
    other: u32,
}

const WHOLE: u64 = 1 << 32;

impl Mix {
    /// `weights`: at least one, each above 0 and finite.
    pub fn new(weights: &[f64]) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut columns: Vec<Column> = (0..weights.len())
            .map(|index| Column {
                keep: WHOLE,
                other: index as u32,
            })
            .collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|index| scaled[*index] < 1.0);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            columns[poor] = Column {
                keep: (scaled[poor] * WHOLE as f64) as u64,
                other: rich as u32,
            };
            scaled[rich] -= 1.0 - scaled[poor];
            if scaled[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Mix { columns }
    }

    /// One index. A table of one index draws nothing from `random`.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> usize {
        if self.columns.len() == 1 {
            return 0;
        }
        let column = random.below(self.columns.len() as u64) as usize;
        let Column { keep, other } = self.columns[column];
        if random.bits() >> 32 < keep {
            column
        } else {
            other as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_drawn_by_weight() {
        let weights = [5.0, 1.0, 0.5, 3.5];
        let mix = Mix::new(&weights);
        let mut random = Random::new(11);
        let n = 100_000;
        let mut counts = [0.0; 4];

        for _ in 0..n {
            counts[mix.draw(&mut random)] += 1.0;
        }

        // Chi-square with 3 degrees of freedom exceeds 16.3 once in a thousand seeds.
        let chi: f64 = (0..4)
            .map(|i| {
                let expected = f64::from(n) * weights[i] / 10.0;
                f64::powi(counts[i] - expected, 2) / expected
            })
            .sum();
        assert!(chi < 16.3, "{counts:?}");
    }

    #[test]
    fn the_table_holds_each_weight_to_nine_digits() {
        let weights = [0.001, 7.0, 2.5, 2.5, 100.0];
        let mix = Mix::new(&weights);
        let mut mass = [0.0; 5];

        for (index, column) in mix.columns.iter().enumerate() {
            mass[index] += column.keep as f64 / WHOLE as f64;
            mass[column.other as usize] += 1.0 - column.keep as f64 / WHOLE as f64;
        }

        for index in 0..5 {
            assert!((mass[index] / 5.0 - weights[index] / 112.001).abs() < 1e-9);
        }
    }
}
