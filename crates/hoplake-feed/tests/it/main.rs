//! Feeds from real servers, next to what the tables say.

mod mariadb;
mod model;
mod workload;
