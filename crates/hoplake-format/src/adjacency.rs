//! The block codec of neighbour lists.
