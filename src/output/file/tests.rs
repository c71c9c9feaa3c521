use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_old_file_stays_until_the_new_one_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.txt");
    write(&path, b"old").unwrap();
    let mut draft = Draft::begin(&path).unwrap();
    draft.write_all(b"half of the n").unwrap();
    draft.flush().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    drop(draft);
    assert_eq!((std::fs::read(&path).unwrap(), names(home.path())), (b"old".to_vec(), vec!["a.txt".to_owned()]));
    write(&path, b"new").unwrap();
    assert_eq!((std::fs::read(&path).unwrap(), names(home.path())), (b"new".to_vec(), vec!["a.txt".to_owned()]));
}

#[test]
fn what_a_killed_writer_left_is_cleared_away_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    for name in [".a.txt.AbC123.part", ".a.txt.mine.part", ".b.txt.AbC123.part", "a.txt.part"] {
        std::fs::write(home.path().join(name), "x").unwrap();
    }
    // Somebody else is at it.
    let other = Draft::begin(&home.path().join("a.txt")).unwrap();
    write(&home.path().join("a.txt"), b"new").unwrap();
    assert_eq!(names(home.path()).len(), 5, "{:?}", names(home.path()));
    assert!(!home.path().join(".a.txt.AbC123.part").exists());
    other.finish().unwrap();
    assert_eq!(names(home.path()), [".a.txt.mine.part", ".b.txt.AbC123.part", "a.txt", "a.txt.part"]);
}

#[test]
fn places_that_cannot_be_written_are_named_before_the_work() {
    let home = tempfile::tempdir().unwrap();
    for (path, why) in [(home.path().to_owned(), "it is a folder"), (home.path().join("no/x"), "there is no folder")] {
        let told = check(&path).unwrap_err().to_string();
        assert!(told.starts_with(&format!("cannot write {}: ", path.display())) && told.contains(why), "{told}");
    }
    assert!(check(Path::new("")).is_err());
    check(&home.path().join("x")).unwrap();
    assert_eq!(names(home.path()), [] as [&str; 0], "asking leaves nothing");
}

#[cfg(unix)]
#[test]
fn links_modes_and_devices_stay_what_they_are() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let (real, link) = (home.path().join("real"), home.path().join("link"));
    std::fs::write(&real, "old").unwrap();
    std::fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    write(&link, b"new").unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read(&real).unwrap(), b"new");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    // A new file is like any other new file.
    let (ours, plain) = (home.path().join("ours"), home.path().join("plain"));
    write(&ours, b"").unwrap();
    std::fs::write(&plain, b"").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&plain));

    write(Path::new("/dev/null"), b"x").unwrap();
    if Path::new("/dev/full").exists() {
        let told = write(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(told.starts_with("cannot write /dev/full: "), "{told}");
        assert!(is_stream(Path::new("/dev/full")), "it is still the device");
    }
}
