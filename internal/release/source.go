package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// source is the input of a release.
type source struct {
	version string
	commit  string
	date    time.Time
}

// semantic is the form of versions that npm and hosts read: major.minor.patch, and a pre-release.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// readSource asks git for commit, date and version. The variables VERSION, COMMIT and SOURCE_DATE_EPOCH win; a folder without git
// needs all of them.
func readSource(variable func(string) string) (source, error) {
	s := source{commit: variable("COMMIT"), version: strings.TrimPrefix(variable("VERSION"), "v")}
	if s.commit == "" {
		head, err := git("rev-parse", "HEAD")
		if err != nil {
			return s, fmt.Errorf("the commit is unknown: %w\n  Run it in a git checkout, or set COMMIT, SOURCE_DATE_EPOCH and VERSION", err)
		}
		changes, err := git("status", "--porcelain")
		if err != nil {
			return s, err
		}
		if s.commit = head; changes != "" {
			s.commit += "+modified"
			fmt.Fprintln(os.Stderr, "release: the checkout has changes that are not committed: another build may differ")
		}
	}
	seconds := variable("SOURCE_DATE_EPOCH")
	if seconds == "" {
		var err error
		if seconds, err = git("log", "-1", "--format=%ct"); err != nil {
			return s, fmt.Errorf("the date is unknown: %w\n  Set SOURCE_DATE_EPOCH to seconds since 1970", err)
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH: expected seconds since 1970, found %q", seconds)
	}
	s.date = time.Unix(n, 0).UTC()
	if s.version == "" {
		tag, _ := git("describe", "--tags", "--exact-match", "--match", "v[0-9]*")
		s.version = cmp.Or(strings.TrimPrefix(tag, "v"), "0.0.0-dev.g"+s.commit[:min(12, len(s.commit))])
	}
	if !semantic.MatchString(s.version) {
		return s, fmt.Errorf("VERSION: expected a version such as 1.2.3 or 1.2.3-rc.1, found %q", s.version)
	}
	return s, nil
}

// git returns the output of a git command.
func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
