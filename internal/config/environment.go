package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Environment is the source of a Config besides flags. System returns the environment of the process; tests make their own.
type Environment struct {
	// Variables in the form of os.Environ: "NAME=value".
	Variables []string
	// GOOS picks the default data folder: "linux", "darwin", "windows", …
	GOOS string
	// Home is the user's home folder, "" if unknown.
	Home string
	// Directory is the base of relative paths.
	Directory string
	// ReadFile reads a file that a variable names.
	ReadFile func(path string) ([]byte, error)

	// secrets, unless nil, notes the secrets that are read.
	secrets *secrets
	// notes, unless nil, takes warnings.
	notes *notes
}

// System is the environment of this process.
func System() Environment {
	// Both may be missing, for instance in a container without HOME. Their users report it.
	home, _ := os.UserHomeDir()
	directory, _ := os.Getwd()
	return Environment{
		Variables: os.Environ(),
		GOOS:      runtime.GOOS,
		Home:      home,
		Directory: directory,
		ReadFile:  readSettings,
	}
}

// Variable returns a variable of another program, "" if it is not set.
func (e Environment) Variable(name string) string { return e.lookup(name) }

// lookup returns a variable trimmed; blank counts as unset (spec: cli-and-config, 3.1). As in a process, the last
// entry of a name counts.
func (e Environment) lookup(name string) string {
	value := ""
	for _, entry := range e.Variables {
		if k, v, ok := strings.Cut(entry, "="); ok && k == name {
			value = v
		}
	}
	return strings.TrimSpace(value)
}

// absolute resolves a path given by the user: "~/" is the home folder, which a shell would have replaced but the
// configuration file of a host does not, and the rest is relative to Directory.
func (e Environment) absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && e.Home != "" {
		return filepath.Join(e.Home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.Directory, path)
}

// dataFolder returns the per-user directory for databases, "" if the home directory is unknown. XDG_DATA_HOME does not change it: hosts
// do not pass it on to servers, which would open another database than the user's shell.
func (e Environment) dataFolder() string {
	const name = "workflows-engine"
	if dir := e.lookup("LOCALAPPDATA"); dir != "" && e.GOOS == "windows" {
		return filepath.Join(dir, name)
	}
	switch {
	case e.Home == "":
		return ""
	case e.GOOS == "windows":
		return filepath.Join(e.Home, "AppData", "Local", name)
	case e.GOOS == "darwin":
		return filepath.Join(e.Home, "Library", "Application Support", name)
	}
	return filepath.Join(e.Home, ".local", "share", name)
}

// xdgFolder returns the directory below XDG_DATA_HOME, "" without one. A relative path is ignored, as the XDG base directory rules require.
func (e Environment) xdgFolder() string {
	if dir := e.lookup("XDG_DATA_HOME"); filepath.IsAbs(dir) && e.GOOS != "windows" {
		return filepath.Join(dir, "workflows-engine")
	}
	return ""
}
