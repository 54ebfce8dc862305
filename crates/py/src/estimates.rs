//! Estimates within a trial over arrays of Python, which are read where they are.

use loadlens_estimate::{
    self as estimate, Buckets, Cell, Cells, Estimate, Population, Recorded, Sums, Undecided,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Point, low, high, how many independent observations, how the interval was found; and why there is no point.
type Found = (
    Option<f64>,
    Option<f64>,
    Option<f64>,
    f64,
    &'static str,
    Option<String>,
);

fn told(found: Result<Estimate, Undecided>) -> Found {
    match found {
        Ok(found) => (
            Some(found.point),
            found.low,
            found.high,
            found.independent,
            found.method.into(),
            None,
        ),
        Err(undecided) => (
            None,
            undecided.at_least,
            None,
            0.0,
            "",
            Some(undecided.reason),
        ),
    }
}

fn floats(array: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    PyBuffer::<f64>::get(array)?.to_vec(array.py())
}

/// Whole numbers of an array of any such type; none is negative.
enum Numbers {
    I8(PyBuffer<i8>),
    I16(PyBuffer<i16>),
    I32(PyBuffer<i32>),
    I64(PyBuffer<i64>),
    U16(PyBuffer<u16>),
}

/// The value of an expression that uses the buffer of numbers, whatever their type is.
macro_rules! of_any_type {
    ($numbers:expr, $buffer:ident => $value:expr) => {
        match $numbers {
            Numbers::I8($buffer) => $value,
            Numbers::I16($buffer) => $value,
            Numbers::I32($buffer) => $value,
            Numbers::I64($buffer) => $value,
            Numbers::U16($buffer) => $value,
        }
    };
}

impl Numbers {
    fn of(array: &Bound<'_, PyAny>) -> PyResult<Numbers> {
        let numbers = PyBuffer::get(array)
            .map(Numbers::I8)
            .or_else(|_| PyBuffer::get(array).map(Numbers::I16))
            .or_else(|_| PyBuffer::get(array).map(Numbers::I32))
            .or_else(|_| PyBuffer::get(array).map(Numbers::U16))
            .or_else(|_: PyErr| PyBuffer::get(array).map(Numbers::I64))?;
        of_any_type!(&numbers, buffer => buffer.is_c_contiguous())
            .then_some(numbers)
            .ok_or_else(|| PyValueError::new_err("an array with gaps"))
    }

    fn len(&self) -> usize {
        of_any_type!(self, buffer => buffer.item_count())
    }

    fn to_vec(&self, py: Python<'_>) -> Vec<u64> {
        of_any_type!(self, buffer => {
            let cells = buffer.as_slice(py).unwrap_or(&[]);
            cells.iter().map(|cell| cell.get() as u64).collect()
        })
    }
}

/// The cells of an `IntervalCounts`.
struct Table<'py> {
    py: Python<'py>,
    run_interval: Vec<u64>,
    run_cells: Vec<u64>,
    place: Numbers,
    count: Numbers,
}

impl Table<'_> {
    fn walk(&self, mut cells: impl Iterator<Item = (u32, u64)>, visit: &mut impl FnMut(Cell)) {
        for (&step, &held) in self.run_interval.iter().zip(&self.run_cells) {
            for (place, mut left) in cells.by_ref().take(held as usize) {
                while left > 0 {
                    let count = u32::try_from(left).unwrap_or(u32::MAX);
                    left -= u64::from(count);
                    visit(Cell {
                        step: step as u32,
                        low: place,
                        high: place,
                        count,
                    });
                }
            }
        }
    }
}

impl Cells for Table<'_> {
    fn count(&self) -> usize {
        self.place.len()
    }

    fn each(&self, mut visit: impl FnMut(Cell)) {
        of_any_type!(&self.place, places => {
            let places = places.as_slice(self.py).unwrap_or(&[]);
            let places = places.iter().map(|place| place.get() as u32);
            of_any_type!(&self.count, counts => {
                let counts = counts.as_slice(self.py).unwrap_or(&[]);
                let counts = counts.iter().map(|count| count.get() as u64);
                self.walk(places.zip(counts), &mut visit);
            });
        });
    }
}

/// Interval and cells of each run, place and count of each cell.
type Runs<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
);
/// Interval, age and count of unfinished requests.
type Late<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Arrays of an `IntervalCounts`, as its method `arrays` gives them.
#[derive(FromPyObject)]
pub struct Arrays<'py>(
    usize,                                          // intervals
    f64,                                            // seconds; 0: not known
    Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>, // lower and upper ends; none: those of HDR histograms
    Runs<'py>,
    Late<'py>,
);

fn population<'py>(py: Python<'py>, arrays: &Arrays<'py>) -> PyResult<Population<Table<'py>>> {
    let Arrays(intervals, seconds, edges, (run_interval, run_cells, place, count), late) = arrays;
    let (late_interval, late_age, late_count) = late;
    let late_age = floats(late_age)?;
    let mut ages = late_age.clone();
    ages.sort_by(f64::total_cmp);
    ages.dedup();
    let (late_interval, late_count) = (
        Numbers::of(late_interval)?.to_vec(py),
        Numbers::of(late_count)?.to_vec(py),
    );
    let late = (0..late_age.len()).map(|index| {
        let place = ages.partition_point(|age| *age < late_age[index]) as u32;
        Cell {
            step: late_interval[index] as u32,
            low: place,
            high: place,
            count: late_count[index] as u32,
        }
    });
    let late: Vec<Cell> = late.collect();
    let buckets = match edges {
        None => Buckets::Hdr { ages: Some(ages) },
        Some((lower, upper)) => Buckets::Table {
            lower: floats(lower)?,
            upper: floats(upper)?,
            ages,
        },
    };
    let finished = Table {
        py,
        run_interval: Numbers::of(run_interval)?.to_vec(py),
        run_cells: Numbers::of(run_cells)?.to_vec(py),
        place: Numbers::of(place)?,
        count: Numbers::of(count)?,
    };
    let is_whole = finished
        .run_interval
        .iter()
        .chain(&late_interval)
        .all(|&at| at < *intervals as u64);
    let mut fits = true;
    finished.each(|cell| fits &= cell.low < buckets.places());
    if !is_whole || !fits {
        return Err(PyValueError::new_err("a cell outside of the table"));
    }
    Ok(Population::new(Recorded {
        buckets,
        steps: *intervals,
        seconds: *seconds,
        finished,
        late,
        whole: None,
    }))
}

/// The p-quantile of counts by interval.
#[pyfunction]
pub fn quantile<'py>(
    py: Python<'py>,
    counts: Arrays<'py>,
    p: f64,
    confidence: f64,
) -> PyResult<Found> {
    Ok(told(population(py, &counts)?.quantile(p, confidence)))
}

/// The mean time from the sums, counts and sums of squares of intervals, and the counts of unfinished requests.
#[pyfunction]
pub fn mean_time<'py>(
    py: Python<'py>,
    sums: &Bound<'py, PyAny>,
    counts: &Bound<'py, PyAny>,
    squares: &Bound<'py, PyAny>,
    late: Option<Arrays<'py>>,
    confidence: f64,
) -> PyResult<Found> {
    let late = late.map(|arrays| population(py, &arrays)).transpose()?;
    let (sums, counts, squares) = (floats(sums)?, floats(counts)?, floats(squares)?);
    let times = Sums {
        sums: &sums,
        counts: &counts,
        squares: Some(&squares),
    };
    Ok(told(estimate::mean_time(times, late.as_ref(), confidence)))
}

/// The mean from the sums, counts and sums of squares of intervals.
#[pyfunction]
pub fn mean(
    sums: &Bound<'_, PyAny>,
    counts: &Bound<'_, PyAny>,
    squares: Option<&Bound<'_, PyAny>>,
    confidence: f64,
) -> PyResult<Found> {
    let (sums, counts, squares) = (
        floats(sums)?,
        floats(counts)?,
        squares.map(floats).transpose()?,
    );
    let of = Sums {
        sums: &sums,
        counts: &counts,
        squares: squares.as_deref(),
    };
    Ok(told(estimate::mean(of, confidence)))
}

/// Events per second from the events and the length of intervals.
#[pyfunction]
pub fn rate(
    events: &Bound<'_, PyAny>,
    lengths_s: &Bound<'_, PyAny>,
    confidence: f64,
) -> PyResult<Found> {
    Ok(told(estimate::rate(
        &floats(events)?,
        &floats(lengths_s)?,
        confidence,
    )))
}

/// The share of hits from the hits and totals of intervals.
#[pyfunction]
pub fn share(
    hits: &Bound<'_, PyAny>,
    totals: &Bound<'_, PyAny>,
    confidence: f64,
) -> PyResult<Found> {
    Ok(told(estimate::share(
        &floats(hits)?,
        &floats(totals)?,
        confidence,
    )))
}

/// The number of the step of equal length that each interval of a record belongs to.
#[pyfunction]
pub fn level(lengths_s: Vec<f64>) -> Vec<u32> {
    estimate::level(&lengths_s)
}

/// True if requests in flight at the end of a warmed-up, steady measured part are left out.
#[pyfunction]
pub fn edge_is_cut(longest_s: f64, oldest_s: f64, measured_s: f64, all_ended: bool) -> bool {
    estimate::edge_is_cut(longest_s, oldest_s, measured_s, all_ended)
}
