"""What every medium shares: colours, the form of numbers, words, and charts. No I/O, no layout."""
