//! `hoplake feed`, as the documentation walks through it.

use std::fs;

use hoplake_testkit::MariaDbServer;
use serde_json::Value;

use crate::hoplake;
