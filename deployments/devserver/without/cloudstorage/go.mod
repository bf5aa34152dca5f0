// What Temporal's server needs of Google's cloud storage to build without it.
module cloud.google.com/go/storage

go 1.26
