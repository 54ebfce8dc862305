"""The command lines and output layouts of wrk, ab and hey on the Loadlens engine."""
