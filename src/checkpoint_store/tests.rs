use super::*;
use crate::output::lock::FolderLock;
use axum::body::Bytes;
use object_store::memory::InMemory;
use std::path::Path;

const RUN: &str = "regex-tiny-20260101-000000";

fn run() -> RunId {
    RUN.into()
}

fn in_memory() -> CheckpointStore {
    CheckpointStore::over(Arc::new(InMemory::new()))
}

/// A folder of a run as far as copies look at it: only names count, and contents are whatever they are.
fn folder(update: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), update);
    folder
}

fn write(folder: &Path, update: u64) {
    std::fs::create_dir_all(folder).unwrap();
    let put = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    put(&format!("update-{update:08}.safetensors"), format!("weights {update}"));
    put("best.safetensors", format!("best by {update}"));
    put("descriptions.jsonl", "a line\n".repeat(update as usize));
    put("curve.jsonl", format!("{{\"update\":{update}}}\n"));
}

fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read =
        |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap());
    let mut all: Vec<_> = entries.map(read).collect();
    all.sort();
    all
}

/// The places of all objects.
async fn places(store: &CheckpointStore) -> Vec<String> {
    let all: Vec<ObjectMeta> = store.objects.list(None).try_collect().await.unwrap();
    let mut places: Vec<String> = all.into_iter().map(|object| object.location.to_string()).collect();
    places.sort();
    places
}

async fn contents_of(store: &CheckpointStore, name: &str) -> Result<Vec<u8>> {
    let (_, chunks) = store.read(&run(), name).await?.expect("the manifest names it");
    let chunks: Vec<Bytes> = chunks.try_collect().await?;
    Ok(chunks.concat())
}

#[tokio::test]
async fn a_run_comes_back_as_it_was() {
    let (store, here) = (in_memory(), folder(40));
    // More than one part.
    let large: Vec<u8> = (0..20_000_000_u32).map(|n| (n / 7) as u8).collect();
    std::fs::write(here.path().join("best.safetensors"), &large).unwrap();
    std::fs::write(here.path().join("loading.json"), "not needed").unwrap();
    assert_eq!(store.fetch(&run(), &here.path().join("other")).await.unwrap(), Fetched::Nothing);
    let manifest = store.copy(&run(), here.path()).await.unwrap().unwrap();
    assert_eq!(manifest.update, 40);
    let names: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["best.safetensors", "update-00000040.safetensors", "descriptions.jsonl", "curve.jsonl"]);

    let home = tempfile::tempdir().unwrap();
    let there = home.path().join("runs").join(RUN);
    assert_eq!(store.fetch(&run(), &there).await.unwrap(), Fetched::Update(40));
    std::fs::remove_file(here.path().join("loading.json")).unwrap();
    assert_eq!(contents(&there), contents(here.path()));
    assert_eq!(store.fetch(&run(), &there).await.unwrap(), Fetched::Current);
    assert!(contents_of(&store, "best.safetensors").await.unwrap() == large);
    assert!(store.read(&run(), "update-00000041.safetensors").await.unwrap().is_none());
}

#[tokio::test]
async fn an_older_folder_gives_way_and_a_newer_one_stays() {
    let (store, newer) = (in_memory(), folder(80));
    store.copy(&run(), newer.path()).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let here = home.path().join(RUN);
    write(&here, 40);
    std::fs::write(here.join("run.lock"), "").unwrap();
    let held = FolderLock::acquire(&here.join("run.lock")).unwrap();
    assert!(matches!(store.fetch(&run(), &here).await.unwrap_err(), CheckpointStoreError::Busy(_)));
    drop(held);
    assert_eq!(store.fetch(&run(), &here).await.unwrap(), Fetched::Update(80));
    assert_eq!(contents(&here), contents(newer.path()));
    write(&here, 120);
    assert_eq!(store.fetch(&run(), &here).await.unwrap(), Fetched::Current);
    // A server that was away too long does not undo what another has done since.
    store.copy(&run(), &here).await.unwrap();
    let told = store.copy(&run(), newer.path()).await.unwrap_err().to_string();
    assert!(told.contains("update 120") && told.contains("update 80"), "{told}");
    assert_eq!(store.manifest(&run()).await.unwrap().unwrap().update, 120);
}

#[tokio::test]
async fn a_copy_that_breaks_off_leaves_the_older_state_whole() {
    let place = tempfile::tempdir().unwrap();
    let address = CheckpointAddress::Folder(place.path().join("copies"));
    let (store, here) = (CheckpointStore::open(&address).unwrap(), folder(40));
    let before = store.copy(&run(), here.path()).await.unwrap().unwrap();
    let (old, old_places) = (contents(here.path()), places(&store).await);

    // The last file cannot be written, since a folder lies in its place.
    std::fs::remove_file(here.path().join("update-00000040.safetensors")).unwrap();
    write(here.path(), 80);
    let sha256 = hex::encode(<sha2::Sha256 as sha2::Digest>::digest("{\"update\":80}\n"));
    let curve = FileEntry { name: "curve.jsonl".to_owned(), bytes: 14, sha256 };
    let obstacle = place.path().join("copies").join(curve.place(&run()).as_ref());
    std::fs::create_dir_all(obstacle.join("within")).unwrap();
    assert!(store.copy(&run(), here.path()).await.is_err());
    assert_eq!(store.manifest(&run()).await.unwrap().unwrap(), before, "the manifest comes last");
    let between = places(&store).await;
    assert!(between.iter().any(|place| place.ends_with("-update-00000080.safetensors")), "{between:?}");
    assert!(
        old_places.iter().all(|place| between.contains(place)),
        "nothing of the older state is removed: {between:?}"
    );
    let home = tempfile::tempdir().unwrap();
    assert_eq!(store.fetch(&run(), &home.path().join("a")).await.unwrap(), Fetched::Update(40));
    assert_eq!(contents(&home.path().join("a")), old);

    // It is finished later, and then the older state goes.
    std::fs::remove_dir_all(&obstacle).unwrap();
    store.copy(&run(), here.path()).await.unwrap();
    assert_eq!(places(&store).await.len(), 5);
    assert!(places(&store).await.iter().all(|place| !place.contains("update-00000040")));
    assert_eq!(store.fetch(&run(), &home.path().join("a")).await.unwrap(), Fetched::Update(80));
    assert_eq!(contents(&home.path().join("a")), contents(here.path()));
    store.remove(&run()).await.unwrap();
    assert_eq!(places(&store).await, [] as [&str; 0]);
}

#[tokio::test]
async fn damaged_objects_are_refused_with_words() {
    let (store, here) = (in_memory(), folder(40));
    let manifest = store.copy(&run(), here.path()).await.unwrap().unwrap();
    let home = tempfile::tempdir().unwrap();
    let there = home.path().join(RUN);
    let newest = &manifest.files[1];
    for (damage, word) in [("weights 41", "SHA-256"), ("weights", "has 7 bytes"), ("", "has 0 bytes")] {
        store.objects.put(&newest.place(&run()), damage.into()).await.unwrap();
        for told in [
            store.fetch(&run(), &there).await.unwrap_err().to_string(),
            contents_of(&store, &newest.name).await.unwrap_err().to_string(),
        ] {
            assert!(told.contains(word) && told.contains(RUN) && told.contains(&newest.name), "{told}");
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing is laid down");
    }
    store.objects.delete(&newest.place(&run())).await.unwrap();
    assert!(store.fetch(&run(), &there).await.unwrap_err().to_string().contains(&newest.name));
    // The next copy mends it.
    store.copy(&run(), here.path()).await.unwrap();
    assert_eq!(store.fetch(&run(), &there).await.unwrap(), Fetched::Update(40));

    for (text, word) in [
        ("{", "cannot be read".to_owned()),
        (r#"{"format":9,"update":1,"files":[]}"#, "layout 9".to_owned()),
        (
            &format!(r#"{{"format":1,"update":1,"files":[{{"name":"../x","bytes":1,"sha256":"{:064}"}}]}}"#, 0),
            "../x".to_owned(),
        ),
    ] {
        store.objects.put(&manifest::place(&run()), text.to_owned().into()).await.unwrap();
        let told = store.fetch(&run(), &there).await.unwrap_err().to_string();
        assert!(told.contains(&word) && told.contains("damaged"), "{told}");
    }
}

#[tokio::test]
async fn lines_that_come_meanwhile_are_left_out() {
    let (store, here) = (in_memory(), folder(3));
    let (_, mut sources) = store.sources(here.path()).unwrap().unwrap();
    let log = sources.remove(2);
    std::fs::write(here.path().join("descriptions.jsonl"), "a line\n".repeat(5)).unwrap();
    let place = log.entry.place(&run());
    store.send(log, place.clone()).await.unwrap();
    let sent = store.objects.get(&place).await.unwrap().bytes().await.unwrap();
    assert_eq!(sent, "a line\n".repeat(3));
    // A file of other contents is not taken for the one that was read before.
    let log = store.sources(here.path()).unwrap().unwrap().1.remove(2);
    std::fs::write(here.path().join("descriptions.jsonl"), "b line\n".repeat(5)).unwrap();
    let place = log.entry.place(&run());
    assert!(matches!(store.send(log, place).await.unwrap_err(), CheckpointStoreError::Changed(_)));
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let told = CheckpointStore::open(&CheckpointAddress::Folder(file.path().join("x"))).unwrap_err().to_string();
    assert!(told.starts_with("file:///") && told.contains("cannot be used"), "{told}");
}
