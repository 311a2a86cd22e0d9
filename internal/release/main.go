// Command release makes all release files: archives of both programs for each platform, their bills of materials, npm
// packages, an MCPB bundle and the entry for the MCP registry. The same commit makes the same bytes.
//
//	go run ./internal/release [-out dist] [-platforms linux/amd64,darwin/arm64]
//	go run ./internal/release -completions completions
//
// docs/releasing.md lists the files and how they are published.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	// A signal ends the work in order, so that no temporary folder stays.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	out := set.String("out", "dist", "output `folder`; it is emptied")
	names := set.String("platforms", "", "`list` of platforms, as in linux/amd64,darwin/arm64; all unless given")
	completions := set.String("completions", "", "only write the completions for shells, into this `folder`")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("argument %q is not understood", set.Arg(0))
	}
	if *completions != "" {
		entries, err := completionsOf(ctx, "./cmd/workflows-engine")
		return errors.Join(err, write(*completions, entries))
	}
	targets, err := choose(*names)
	if err != nil {
		return err
	}
	s, err := readSource(os.Getenv)
	if err != nil {
		return err
	}
	made, err := s.make(ctx, targets)
	if err != nil {
		return err
	}
	if err := empty(*out); err != nil {
		return err
	}
	if err := write(*out, made); err != nil {
		return err
	}
	fmt.Printf("workflows-engine %s, commit %s, %s: %d files in %s\n", s.version, s.commit, s.date.Format("2006-01-02"), len(made), *out)
	return nil
}

// make makes all files of a release.
func (s source) make(ctx context.Context, targets []target) ([]entry, error) {
	common, err := pages()
	if err != nil {
		return nil, err
	}
	samples, err := examples()
	if err != nil {
		return nil, err
	}
	built, bills, err := s.build(ctx, targets)
	if err != nil {
		return nil, err
	}
	completions, err := completionsOf(ctx, "./cmd/workflows-engine")
	if err != nil {
		return nil, err
	}
	files := bills
	for _, t := range targets {
		archive, err := s.archive(t, slices.Concat(common, samples, below("completions", completions), built[t]))
		if err != nil {
			return nil, err
		}
		files = append(files, archive)
	}
	packages, err := s.packages(targets, built, common, samples)
	if err != nil {
		return nil, err
	}
	bundle, err := s.bundle(targets, built, common)
	if err != nil {
		return nil, err
	}
	registry, err := s.registry(bundle)
	if err != nil {
		return nil, err
	}
	files = sorted(slices.Concat(files, packages, []entry{bundle, registry}))
	sums := ""
	for _, f := range files {
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return append(files, entry{"workflows-engine_" + s.version + "_checksums.txt", plain, []byte(sums)}), nil
}

// archive packs the download of a platform.
func (s source) archive(t target, entries []entry) (entry, error) {
	name := s.name("workflows-engine", t)
	pack, extension := tarball, ".tar.gz"
	if t.os == "windows" {
		pack, extension = zipped, ".zip"
	}
	data, err := pack(s.date, below(name, entries))
	return entry{name + extension, plain, data}, err
}

// pages are the documents that everything installed has. Their README is for users without Go and without this repository.
func pages() (entries []entry, err error) {
	for _, name := range []string{"LICENSE", "THIRD_PARTY_LICENSES.md", "internal/release/npm/README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("%w\n  Run it in the root of the repository", err)
		}
		entries = append(entries, entry{path.Base(name), plain, text})
	}
	return entries, nil
}

// examples are the definitions for first steps.
func examples() (entries []entry, err error) {
	names, err := fs.Glob(os.DirFS("."), "examples/*/*.workflow.*")
	if err == nil && len(names) == 0 {
		err = errors.New("there are no examples/*/*.workflow.*\n  Run it in the root of the repository")
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name, plain, text})
	}
	return entries, err
}

// empty removes the files of an earlier release from a folder, and returns an error if it holds anything else.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "workflows-engine") && e.Name() != "npm" && e.Name() != "server.json" {
			return fmt.Errorf("%s holds %s, which no release has made: name another folder with -out, or empty it", folder, e.Name())
		}
	}
	return os.RemoveAll(folder)
}

// write writes files into a folder.
func write(folder string, files []entry) error {
	for _, f := range files {
		file := filepath.Join(folder, filepath.FromSlash(path.Clean(f.name)))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}
