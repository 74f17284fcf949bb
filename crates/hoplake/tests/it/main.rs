//! The facade on real data, on real stores, against other systems' answers and a naive oracle.

mod snb;
