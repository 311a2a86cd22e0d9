package buildstamp

import (
	"runtime/debug"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "false"}}
	changed := append(vcs[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for name, tt := range map[string]struct {
		release Stamp
		info    *debug.BuildInfo
		want    string
	}{
		"release":              {Stamp{"1.2.3", "def", "2026-02-03T00:00:00Z"}, built("v9.9.9", vcs...), "1.2.3 (commit def, 2026-02-03T00:00:00Z)"},
		"release without rest": {Stamp{Version: "1.2.3"}, built("v9.9.9", vcs...), "1.2.3 (commit unknown, unknown)"},
		"go install of a tag":  {Stamp{}, built("v1.2.3"), "1.2.3 (commit unknown, unknown)"},
		"checkout":             {Stamp{}, built("v0.0.0-20260102030405-abc", vcs...), "0.0.0-20260102030405-abc (commit abc, 2026-01-02T03:04:05Z)"},
		"changed checkout":     {Stamp{}, built("(devel)", changed...), "devel (commit abc+modified, 2026-01-02T03:04:05Z)"},
		"nothing":              {Stamp{}, nil, "devel (commit unknown, unknown)"},
	} {
		if got := read(tt.release, tt.info).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
