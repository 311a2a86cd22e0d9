package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// pageBlocks returns the fenced blocks of a language on the pages of the project, by page.
func pageBlocks(t *testing.T, language string) map[string][]string {
	t.Helper()
	root := filepath.Join("..", "..")
	var paths []string
	for _, pattern := range []string{"README.md", "docs/*.md", "examples/*.md", "examples/*/README.md", "internal/release/npm/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	blocks := map[string][]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range block.FindAllStringSubmatch(string(text), -1) {
			if at[1] == language {
				page := filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
				blocks[page] = append(blocks[page], at[2])
			}
		}
	}
	return blocks
}

// words splits a line as a shell does.
func words(t *testing.T, line string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-c", `for w in `+line+"\n do printf '%s\\0' \"$w\"; done")
	command.Dir = filepath.Join("..", "..")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

var (
	continued = regexp.MustCompile(`\\\n\s*`)
	comment   = regexp.MustCompile(`\s+# .*`)
	redirect  = regexp.MustCompile(`\s+(?:>|<|\||&&) .*`)
)

// TestCommandsOfThePages: the commands on the pages exist, with their arguments and flags, and the settings that they export are accepted.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the pages are for a POSIX shell")
	}
	commands, settings := 0, 0
	for page, blocks := range pageBlocks(t, "sh") {
		for line := range strings.Lines(continued.ReplaceAllString(strings.Join(blocks, ""), " ")) {
			line = redirect.ReplaceAllString(comment.ReplaceAllString(strings.TrimSpace(line), ""), "")
			if setting, ok := strings.CutPrefix(line, "export "); ok {
				settings++
				if err := loadSetting(t, words(t, setting)[0]); err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
				continue
			}
			line = strings.TrimPrefix(strings.TrimPrefix(line, "npx "), "go run ./cmd/")
			arguments, ok := strings.CutPrefix(line, "workflows-engine ")
			if !ok {
				continue
			}
			commands++
			a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &bytes.Buffer{}, now: time.Now}
			cmd, rest, err := newRoot(a).Find(words(t, arguments))
			if err == nil && cmd.HasParent() {
				if err = cmd.ParseFlags(rest); err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
			}
			if err != nil || !cmd.HasParent() {
				t.Errorf("%s: %s: %v", page, line, err)
			}
		}
	}
	if commands < 40 || settings < 5 {
		t.Errorf("only %d commands and %d settings", commands, settings)
	}
}

// loadSetting loads the configuration with a variable. Secrets that it refers to exist.
func loadSetting(t *testing.T, variable string) error {
	t.Helper()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := config.Register(set)
	if err := set.Parse([]string{"--store", "memory"}); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "steps"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "openrouter.key"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := flags.Load(config.Environment{
		GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile,
		Variables: []string{variable, "OPENAI_API_KEY=k", "CODER_KEY=k", "PRICES_TOKEN=k", "FILES_TOKEN=k", "ISSUES_TOKEN=k"},
	})
	return err
}

// TestSettingsOfThePages: the files with settings on the pages are accepted.
func TestSettingsOfThePages(t *testing.T) {
	t.Parallel()
	found := 0
	for page, blocks := range pageBlocks(t, "json") {
		for _, text := range blocks {
			variable := ""
			switch {
			case page != "docs/activities.md":
				continue
			case strings.Contains(text, `"stepCommands"`):
				variable = "WORKFLOW_ENGINE_STEP_COMMANDS="
			case strings.Contains(text, `"mcpServers"`):
				variable = "WORKFLOW_ENGINE_MCP_CONFIG="
			default:
				t.Fatalf("%s: what is this?\n%s", page, text)
			}
			found++
			file := filepath.Join(t.TempDir(), "settings.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := loadSetting(t, variable+file); err != nil {
				t.Errorf("%s: %v\n%s", page, err, text)
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d files", found)
	}
}
