package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/mcphost"
)

// server is the name of the program that hosts start.
const server = mcphost.Program

// serverFile is the full path of the server: as given, beside the file by which this program was called, or in PATH. Links
// are kept: those of package managers outlive a version, what they lead to does not.
func (a *app) serverFile(given string) (string, error) {
	name := server
	if a.env.GOOS == "windows" {
		name += ".exe"
	}
	if given != "" {
		path := a.path(given)
		if !executable(path) {
			return "", usage("--server: %s is not a program", path)
		}
		return path, nil
	}
	var beside []string
	for _, self := range []func() (string, error){calledBy, os.Executable} {
		if path, err := self(); err == nil {
			beside = append(beside, filepath.Join(filepath.Dir(path), name))
		}
	}
	candidates := beside[:min(1, len(beside))]
	for _, folder := range filepath.SplitList(a.env.Variable("PATH")) {
		if filepath.IsAbs(folder) {
			candidates = append(candidates, filepath.Join(folder, name))
		}
	}
	for _, path := range append(slices.Clone(candidates), beside...) {
		if executable(path) {
			return path, nil
		}
	}
	return "", usage("there is no %s beside this program or in PATH", name).
		WithHint("Install both programs into one folder, or name the server's file with --server.")
}

// calledBy is the path by which this program was called, links kept.
func calledBy() (string, error) {
	path := os.Args[0]
	var err error
	if !strings.ContainsRune(path, filepath.Separator) {
		if path, err = exec.LookPath(path); err != nil {
			return "", err
		}
	}
	return filepath.Abs(path)
}

// executable reports whether a path is that of a program.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}
