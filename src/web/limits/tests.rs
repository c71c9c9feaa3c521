use super::*;

/// A class behind one address: everybody has a page, then a lease and an answer every three seconds for an hour.
#[test]
fn a_class_of_two_hundred_behind_one_address_is_never_limited() {
    let limits = Limits::new(&WebSettings::default(), []);
    let class = Client("192.0.2.1".parse().unwrap());
    let begin = Instant::now();
    for person in 0..200 {
        assert!(limits.charge(Kind::Lease, class, None, begin).iter().all(|s| s.allowed), "person {person}");
    }
    for second in (0..3600).step_by(3) {
        let now = begin + Duration::from_secs(second);
        for person in 0..200 {
            let cookie = format!("cookie of {person}");
            for kind in [Kind::Lease, Kind::Call, Kind::Words] {
                assert!(
                    limits.charge(kind, class, Some(&cookie), now).iter().all(|s| s.allowed),
                    "{second} s: {person}"
                );
            }
        }
    }
}

/// Scripted people on this machine: 200 at once, each an answer every 0.3 s.
#[test]
fn scripted_people_are_not_limited() {
    let limits = Limits::new(&WebSettings::default(), []);
    let here = Client("127.0.0.1".parse().unwrap());
    let begin = Instant::now();
    for turn in 0..100_u32 {
        let now = begin + Duration::from_millis(300) * turn;
        for person in 0..200 {
            let cookie = format!("cookie of {person}");
            for kind in [Kind::Lease, Kind::Words] {
                let standings = limits.charge(kind, here, Some(&cookie), now);
                assert!(standings.iter().all(|s| s.allowed), "{turn}: {standings:?}");
            }
        }
    }
}

#[test]
fn made_up_cookies_count_for_their_address() {
    let limits = Limits::new(&WebSettings::default(), []);
    let client = Client("192.0.2.1".parse().unwrap());
    let now = Instant::now();
    let allowed = |cookie: Option<&str>| limits.charge(Kind::Lease, client, cookie, now).iter().all(|s| s.allowed);
    let taken = (0..2000).filter(|n| allowed(Some(&format!("made up {n}")))).count();
    assert_eq!(taken, 600);
    assert!(!allowed(None) && !allowed(Some("one more")));
    assert!(allowed(Some("made up 5")), "those who were here before go on");
}

#[test]
fn programs_have_buckets_of_their_own() {
    let limits = Limits::new(&WebSettings::default(), []);
    let (client, now) = (Client(IpAddr::from([10, 0, 0, 1])), Instant::now());
    let charge = |name: Option<&str>| limits.charge(Kind::Program, client, name, now)[0];
    let refused = (0..2_000).map(|_| charge(Some("api-token-1"))).find(|standing| !standing.allowed).unwrap();
    assert!(refused.quota.name == "api" && !refused.wait.is_zero());
    assert!(charge(Some("api-token-2")).allowed && charge(None).allowed);
}
