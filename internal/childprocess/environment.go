package childprocess

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// The variables of the engine that a child gets (spec: cli-and-config, 8.2).
var (
	inherited        = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
	inheritedWindows = []string{
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT",
		"TEMP", "USERNAME", "USERPROFILE", "PROGRAMFILES",
	}
)

// Environment is the environment of a child: few of the engine's variables, which are given in the form of os.Environ,
// and over them its own. Values that begin with "()" are shell functions and stay out.
func Environment(environ []string, own map[string]string) []string {
	names, same := inherited, func(a, b string) bool { return a == b }
	if runtime.GOOS == "windows" {
		names, same = inheritedWindows, strings.EqualFold
	}
	// Never nil, which would mean the whole environment to os/exec.
	child := []string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || strings.HasPrefix(value, "()") || !slices.ContainsFunc(names, func(n string) bool { return same(n, name) }) {
			continue
		}
		child = append(child, entry)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		child = append(child, name+"="+own[name]) // the last entry of a name counts
	}
	return child
}
