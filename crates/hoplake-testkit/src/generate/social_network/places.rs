//! Places and organisations, the same in every network.
//!
//! The numbers and their ranges are SNB's: 111 countries from 0, 1,343 cities from 111, 6 continents from
//! 1,454; 1,575 companies from 0 and 6,380 universities from 1,575. Cities lie country by country, and a
//! country has as many cities as SNB gives it, which is in proportion to its people. Universities are
//! spread evenly over the cities and companies over the countries by their cities.

use std::ops::Range;

use crate::generate::{Edge, SplitMix64};

pub const COUNTRIES: u64 = 111;
pub const CITIES: u64 = 1_343;
pub const CONTINENTS: u64 = 6;
pub const PLACES: u64 = COUNTRIES + CITIES + CONTINENTS;
pub const COMPANIES: u64 = 1_575;
pub const UNIVERSITIES: u64 = 6_380;
pub const ORGANISATIONS: u64 = COMPANIES + UNIVERSITIES;

/// Runs of countries with the same number of cities: cities each, and how many countries.
const CITIES_OF_COUNTRIES: [(u64, u64); 7] = [(199, 1), (198, 1), (40, 6), (39, 4), (10, 40), (3, 32), (2, 27)];

/// The country of the city of this number from 0.
fn country_of(city: u64) -> u64 {
    let mut country = 0;
    let mut left = city;
    for (cities, countries) in CITIES_OF_COUNTRIES {
        if left < cities * countries {
            return country + left / cities;
        }
        left -= cities * countries;
        country += countries;
    }
    COUNTRIES - 1
}

/// The cities of a country, as numbers from 0.
fn cities_of(country: u64) -> Range<u64> {
    let mut first = 0;
    let mut left = country;
    for (cities, countries) in CITIES_OF_COUNTRIES {
        if left < countries {
            return first + left * cities..first + (left + 1) * cities;
        }
        left -= countries;
        first += cities * countries;
    }
    CITIES..CITIES
}

/// The city where a share of `unit` of all persons live in cities before it.
pub fn city_at(unit: f64) -> u64 {
    COUNTRIES + ((unit * CITIES as f64) as u64).min(CITIES - 1)
}

/// The country of a city, both as places.
pub fn country_of_city(city: u64) -> u64 {
    country_of(city - COUNTRIES)
}

/// What `numbers` things spread evenly over all cities have in the cities of `country`.
fn share_of(country: u64, numbers: u64) -> Range<u64> {
    let cities = cities_of(country);
    (cities.start * numbers).div_ceil(CITIES)..(cities.end * numbers).div_ceil(CITIES)
}

/// A university in `country`. The fourth power makes a few of them popular: in SNB the best attended
/// hundredth has 47 % of the students.
pub fn university_in(country: u64, random: &mut SplitMix64) -> u64 {
    let here = share_of(country, UNIVERSITIES);
    COMPANIES + here.start + (random.unit().powi(4) * (here.end - here.start - 1) as f64) as u64
}

/// A company in `country`; the best known hundredth of all employs 38 %.
pub fn company_in(country: u64, random: &mut SplitMix64) -> u64 {
    let here = share_of(country, COMPANIES);
    here.start + (random.unit().powi(4) * (here.end - here.start - 1) as f64) as u64
}

/// `place isPartOf place`: cities in countries, countries in continents.
pub fn parts() -> impl Iterator<Item = Edge> {
    let countries = (0..COUNTRIES).map(|country| (country, COUNTRIES + CITIES + country % CONTINENTS));
    countries.chain((0..CITIES).map(|city| (COUNTRIES + city, country_of(city))))
}

/// `organisation isLocatedIn place`: companies in countries, universities in cities.
pub fn seats() -> impl Iterator<Item = Edge> {
    let companies = (0..COMPANIES).map(|company| (company, country_of(company * CITIES / COMPANIES)));
    let city = |number| COUNTRIES + number * CITIES / UNIVERSITIES;
    companies.chain((0..UNIVERSITIES).map(move |number| (COMPANIES + number, city(number))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_city_lies_in_its_country_and_every_country_has_organisations() {
        assert_eq!((0..COUNTRIES).map(|country| cities_of(country).count() as u64).sum::<u64>(), CITIES);
        for country in 0..COUNTRIES {
            assert!(cities_of(country).all(|city| country_of(city) == country));
            let seats: Vec<Edge> = seats().collect();
            let mut random = SplitMix64::new(country);
            for _ in 0..20 {
                let (company, place) = seats[company_in(country, &mut random) as usize];
                assert_eq!(place, country, "of company {company}");
                let (university, city) = seats[university_in(country, &mut random) as usize];
                assert_eq!(country_of_city(city), country, "of university {university}");
            }
        }
    }
}
