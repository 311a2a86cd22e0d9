package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var (
	// block is a fenced block with its language and text.
	block = regexp.MustCompile("(?ms)^```([\\w ]+)\n(.*?)^```\n")
	// fileName is the last name in quotes before a block that is the content of a file.
	fileName = regexp.MustCompile("`([\\w.-]+\\.(?:yaml|json))`")
	exitSaid = regexp.MustCompile(`# exit status (\d)\n$`)
	// inColumns are durations in columns, which are as wide as their rows.
	inColumns = regexp.MustCompile(` {2,}\d+(\.\d+)?(ms|µs|s)\b`)
	// passing is what else differs from run to run.
	passing = []struct {
		pattern *regexp.Regexp
		instead string
	}{
		{regexp.MustCompile(`\b\d+(\.\d+)?(ms|µs|s)\b( ago)?`), "3ms$3"},
		{regexp.MustCompile(`\b\d{4}-\d\d-\d\d(T| )\d\d:\d\d:\d\d(\.\d+)?Z?`), "2026-05-04${1}10:11:12Z"},
		{regexp.MustCompile(`sha256:[0-9a-f]+`), "sha256:…"},
		{regexp.MustCompile(`(?m) +$`), ""},
	}
)

// TestTutorial does what docs/tutorial.md says, in the order of the page: its YAML blocks become files, its commands are run by a shell,
// and a block of text holds what they print. Commands for a terminal get one, and what the text shows behind "> " is typed there. Run with -update
// to write the blocks of text.
func TestTutorial(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the page are for a POSIX shell")
	}
	page := filepath.Join("..", "..", "docs", "tutorial.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	folder, printed, rest := t.TempDir(), "", string(text)
	// The machine of the reader has a host, and the server in PATH.
	if err := errors.Join(os.Mkdir(filepath.Join(folder, ".cursor"), 0o700),
		os.WriteFile(filepath.Join(folder, "workflows-engine-mcp"), []byte("#!/bin/sh\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	var done strings.Builder
	for at := block.FindStringSubmatchIndex(rest); at != nil; at = block.FindStringSubmatchIndex(rest) {
		before, language, content := rest[:at[0]], rest[at[2]:at[3]], rest[at[4]:at[5]]
		done.WriteString(before)
		switch language {
		case "yaml":
			names := fileName.FindAllStringSubmatch(before, -1)
			if err := os.WriteFile(filepath.Join(folder, names[len(names)-1][1]), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		case "sh":
			printed = shell(t, folder, content)
		case "sh terminal":
			shown := block.FindStringSubmatch(rest[at[1]:])
			if printed = atTerminal(t, folder, content, typedLine.FindAllStringSubmatch(shown[2], -1)); printed == "" {
				printed = shown[2] // this system has no terminal for tests
			}
		case "text":
			if content != printed && !*update {
				t.Errorf("the page shows\n%swant\n%s", content, printed)
			}
			content = printed
		default:
			t.Fatalf("a block of %s", language)
		}
		fmt.Fprintf(&done, "```%s\n%s```\n", language, content)
		rest = rest[at[1]:]
	}
	done.WriteString(rest)
	if *update {
		if err := os.WriteFile(page, []byte(done.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// typedLine is a line that a person has typed; an empty one ends the input.
var typedLine = regexp.MustCompile(`(?m)^> ?(.*)$`)

// shell runs commands in a folder and returns what they print.
func shell(t *testing.T, folder, commands string) string {
	t.Helper()
	want := "0"
	if said := exitSaid.FindStringSubmatch(commands); said != nil {
		want = said[1]
	}
	command := inShell(t, folder, commands)
	out, err := command.CombinedOutput()
	if got := fmt.Sprint(command.ProcessState.ExitCode()); got != want {
		t.Errorf("%s\nexit status %s, want %s: %v\n%s", commands, got, want, err, out)
	}
	return asOnThePage(string(out), folder)
}

func inShell(t *testing.T, folder, commands string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	command.Dir = folder
	command.Env = []string{"PATH=" + os.Getenv("PATH") + ":" + folder, "HOME=" + folder, "PWD=" + folder, "TERM=xterm"}
	return command
}

// asOnThePage is a text without what differs from run to run.
func asOnThePage(text, folder string) string {
	text = strings.ReplaceAll(text, folder, "~")
	text = inColumns.ReplaceAllStringFunc(text, func(found string) string { return fmt.Sprintf("%*s", len(found), "3ms") })
	for _, p := range passing {
		text = p.pattern.ReplaceAllString(text, p.instead)
	}
	return strings.TrimSpace(text) + "\n"
}
