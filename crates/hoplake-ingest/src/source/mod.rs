//! Readers of the layouts that data comes in.
