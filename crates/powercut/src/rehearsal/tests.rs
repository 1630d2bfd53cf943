use super::*;
use crate::log_store::LogStore;
use crate::server::LogServer;

/// A log on loopback, in memory.
fn server() -> String {
    let any = "127.0.0.1:0".parse().unwrap();
    let server = LogServer::bind(any, Token::default(), LogStore::memory()).unwrap();
    let address = server.address().unwrap().to_string();
    std::thread::spawn(move || server.serve(|_| ()));
    address
}

#[test]
fn every_simulated_disk_is_judged_rightly_and_its_loss_counted_exactly() {
    let server = server();
    for seed in 0..4 {
        for behaviour in DiskBehaviour::ALL {
            let cut = rehearse(behaviour, seed * 77 + 1, &server).unwrap();
            assert!(cut.is_right, "{behaviour:?} {seed}: {cut:#?}");
        }
    }
}

#[test]
fn same_seed_gives_the_same_cut() {
    let cut = |seed| {
        rehearse(DiskBehaviour::Lying, seed, &server())
            .unwrap()
            .report
    };
    assert_eq!(cut(3), cut(3));
    assert_ne!(cut(3), cut(4));
}
