// Package buildstamp returns the version of the program, and the commit and date that it was built from.
package buildstamp

import (
	"runtime/debug"
	"strings"
)

// Release builds set these with -ldflags "-X …/internal/buildstamp.version=1.2.3" (internal/release, .goreleaser.yaml).
var version, commit, date string

// unknown is the value of a missing field.
const unknown = "unknown"

// Stamp describes the source of a program.
type Stamp struct {
	// Version is such as 1.2.3, or "devel" without a release.
	Version string
	// Commit is the full hash of the commit, or "unknown".
	Commit string
	// Date is the date of the commit (RFC 3339), or "unknown".
	Date string
}

// Read returns the stamp of this program: the release's, or the one recorded by the Go tool.
func Read() Stamp {
	info, _ := debug.ReadBuildInfo()
	return read(Stamp{version, commit, date}, info)
}

// String returns the stamp in one line.
func (s Stamp) String() string { return s.Version + " (commit " + s.Commit + ", " + s.Date + ")" }

// read completes the stamp of a release with the build information of the Go tool, which may be nil.
func read(s Stamp, info *debug.BuildInfo) Stamp {
	recorded := Stamp{Version: "devel", Commit: unknown, Date: unknown}
	if info != nil {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			recorded.Version = strings.TrimPrefix(v, "v")
		}
		modified := ""
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				recorded.Commit = setting.Value
			case setting.Key == "vcs.time":
				recorded.Date = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				modified = "+modified"
			}
		}
		recorded.Commit += modified
	}
	if s.Version == "" {
		return recorded
	}
	if s.Commit == "" {
		s.Commit = unknown
	}
	if s.Date == "" {
		s.Date = unknown
	}
	return s
}
