//! Where copies of checkpoints go: a folder, or a bucket of an S3-compatible object store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of an object store. It holds no secret: keys come from the usual `AWS_…` variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointAddress {
    /// A folder, such as one that several machines mount.
    Folder(PathBuf),
    /// A bucket, and what the names of its objects begin with.
    Bucket {
        /// Name of the bucket.
        bucket: String,
        /// The beginning of the names, without a slash at either end; it may be empty.
        prefix: String,
    },
}

impl FromStr for CheckpointAddress {
    type Err = String;

    /// The text is not repeated in the message: somebody may have written keys into it, and messages end up in logs.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("file", path)) if path.starts_with('/') => Ok(CheckpointAddress::Folder(path.into())),
            Some(("file", _)) => {
                Err("a folder is named by its whole path, with three slashes: file:///srv/checkpoints".to_owned())
            }
            Some(("s3", rest)) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if rest.contains(['@', '?', '#']) {
                    return Err("the address has a bucket and a prefix alone, s3://bucket/prefix; keys, region and \
                                endpoint come from the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION \
                                and AWS_ENDPOINT_URL"
                        .to_owned());
                }
                let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                if bucket.len() < 3 || !bucket.chars().all(plain) {
                    return Err("the name of a bucket has three or more of letters, digits, dots and hyphens: \
                                s3://bucket/prefix"
                        .to_owned());
                }
                let prefix = prefix.trim_matches('/');
                if !prefix.is_empty() && prefix.split('/').any(|part| matches!(part, "" | "." | "..")) {
                    return Err(
                        "a part of the prefix is empty or consists of dots; name it like s3://bucket/prefix".to_owned()
                    );
                }
                Ok(CheckpointAddress::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
            }
            _ => {
                Err("copies of checkpoints go to file:///some/folder or s3://bucket/prefix; without this setting they \
                      stay in the data folder"
                    .to_owned())
            }
        }
    }
}

impl fmt::Display for CheckpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointAddress::Folder(path) => write!(f, "file://{}", path.display()),
            CheckpointAddress::Bucket { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            CheckpointAddress::Bucket { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CheckpointAddress;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("file:///srv/checkpoints", "file:///srv/checkpoints"),
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            ("s3://my-bucket.1/lab/iliad/", "s3://my-bucket.1/lab/iliad"),
        ] {
            assert_eq!(text.parse::<CheckpointAddress>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn wrong_addresses_are_refused_and_not_repeated() {
        for (text, word) in [
            ("/srv/checkpoints", "file:///some/folder"),
            ("file://srv/checkpoints", "three slashes"),
            ("gs://bucket", "s3://bucket/prefix"),
            ("s3://", "three or more"),
            ("s3://key:secret@bucket", "AWS_SECRET_ACCESS_KEY"),
            ("s3://bucket/a?secret=b", "AWS_SECRET_ACCESS_KEY"),
            ("s3://bucket/a/../b", "dots"),
        ] {
            let told = text.parse::<CheckpointAddress>().unwrap_err();
            assert!(told.contains(word) && !told.contains("key:secret"), "{text}: {told}");
        }
    }
}
