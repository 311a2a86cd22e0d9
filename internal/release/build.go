package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a platform that programs are built for, in the words of Go.
type target struct{ os, arch string }

// targets are the platforms of a release.
var targets = []target{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// programs are the commands of a release.
var programs = []string{"workflows-engine", "workflows-engine-mcp"}

// choose reads a list such as linux/amd64,darwin/arm64. An empty one means all platforms.
func choose(names string) ([]target, error) {
	if names == "" {
		return targets, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.os+"/"+t.arch == name })
		if i < 0 {
			return nil, fmt.Errorf("-platforms: unknown platform %q; known: %v", name, targets)
		}
		if !slices.Contains(chosen, targets[i]) {
			chosen = append(chosen, targets[i])
		}
	}
	return chosen, nil
}

func (t target) String() string { return t.os + "/" + t.arch }

// file is the name of a program's file on a platform.
func (t target) file(program string) string {
	if t.os == "windows" {
		program += ".exe"
	}
	return program
}

// name is the name of a program's release for a platform, as goreleaser forms it.
func (s source) name(program string, t target) string {
	return program + "_" + s.version + "_" + t.os + "_" + t.arch
}

// build builds the programs for each platform, and writes the bill of materials of each. The modules must have been downloaded.
func (s source) build(ctx context.Context, targets []target) (built map[target][]entry, bills []entry, err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	supply := filepath.Join(folder, "supply.exe")
	if _, err := goTool(ctx, folder, nil, "build", "-trimpath", "-ldflags=-w", "-o", supply, "./internal/supply"); err != nil {
		return nil, nil, err
	}
	const stamp = "github.com/workflows-engine/workflows-engine/internal/buildstamp"
	flags := fmt.Sprintf("-s -w -X %[1]s.version=%[2]s -X %[1]s.commit=%[3]s -X %[1]s.date=%[4]s", stamp, s.version, s.commit, s.date.Format(time.RFC3339))
	built = map[target][]entry{}
	for i, t := range targets {
		fmt.Fprintf(os.Stderr, "release: building for %v (%d of %d)\n", t, i+1, len(targets))
		out := filepath.Join(folder, t.os+"-"+t.arch) + string(filepath.Separator)
		// GOFLAGS and the level of the instruction set must not depend on who builds.
		env := []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch, "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GODEBUG="}
		if _, err := goTool(ctx, folder, env, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out, "./cmd/..."); err != nil {
			return nil, nil, fmt.Errorf("%v: %w", t, err)
		}
		for _, name := range programs {
			data, err := os.ReadFile(out + t.file(name))
			if err != nil {
				return nil, nil, err
			}
			built[t] = append(built[t], entry{t.file(name), program, data})
			bill, err := output(exec.CommandContext(ctx, supply, "sbom", "-version", s.version, "-commit", s.commit, out+t.file(name)))
			if err != nil {
				return nil, nil, err
			}
			bills = append(bills, entry{s.name(name, t) + ".cdx.json", plain, bill})
		}
	}
	return built, bills, nil
}

// completionsOf are the completions of a command for shells.
func completionsOf(ctx context.Context, command string) (entries []entry, err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "command.exe") // Windows needs the ending, and nobody else minds it
	if _, err := goTool(ctx, folder, []string{"CGO_ENABLED=0"}, "build", "-trimpath", "-ldflags=-w", "-o", file, command); err != nil {
		return nil, err
	}
	for shell, name := range map[string]string{
		"bash": "workflows-engine.bash", "fish": "workflows-engine.fish", "powershell": "workflows-engine.ps1", "zsh": "_workflows-engine",
	} {
		text, err := output(exec.CommandContext(ctx, file, "completion", shell))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name, plain, text})
	}
	return entries, nil
}

// goTool runs the Go tool with more variables and returns its output. Its temporary files are in folder, which is
// removed if the tool is interrupted.
func goTool(ctx context.Context, folder string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(append(os.Environ(), "GOTMPDIR="+folder), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return output(cmd)
}

// output runs a command. Its error has the command's message.
func output(cmd *exec.Cmd) ([]byte, error) {
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(cmd.Path), cmd.Args[1], err, said.String())
	}
	return out, nil
}
