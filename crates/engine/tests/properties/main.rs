//! What holds for any values: histograms against sorted lists. (Readers of any bytes are in `fuzz`.)

mod histograms;
