// Package buildstamp says which version of the engine a program is, from which commit and of which date.
package buildstamp

import (
	"runtime/debug"
	"strings"
)

// Release builds set these with -ldflags "-X …/internal/buildstamp.version=1.2.3" (internal/release, .goreleaser.yaml).
var version, commit, date string

// unknown stands for what nobody has recorded.
const unknown = "unknown"

// Stamp says what a program was built from.
type Stamp struct {
	// Version as in 1.2.3, "devel" if there is none.
	Version string
	// Commit is the full name of the commit, "unknown" if there is none.
	Commit string
	// Date is the date of the commit (RFC 3339), "unknown" if there is none.
	Date string
}

// Read returns the stamp of this program: that of the release, else what the Go tool has recorded.
func Read() Stamp {
	info, _ := debug.ReadBuildInfo()
	return read(Stamp{version, commit, date}, info)
}

// String is the stamp in one line.
func (s Stamp) String() string { return s.Version + " (commit " + s.Commit + ", " + s.Date + ")" }

// read completes the stamp of a release by what the Go tool has recorded, which may be nil.
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
