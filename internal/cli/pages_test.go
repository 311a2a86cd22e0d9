package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// pageTexts returns the pages of the project, by folder and name.
func pageTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "examples/*.md", "examples/*/README.md", "history/historysql/*.md", "internal/release/npm/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))] = string(text)
		}
	}
	return texts
}

// pageBlocks returns the fenced blocks of a language on the pages of the project, by page.
func pageBlocks(t *testing.T, language string) map[string][]string {
	t.Helper()
	blocks := map[string][]string{}
	for page, text := range pageTexts(t) {
		for _, at := range block.FindAllStringSubmatch(text, -1) {
			if at[1] == language {
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
	comment   = regexp.MustCompile(`(?:^|\s+)# .*`)
	redirect  = regexp.MustCompile(`\s+(?:>|<|\|) .*`)
	launcher  = regexp.MustCompile(`^(?:npx |go run \./cmd/)(workflows-engine)`)
	separate  = regexp.MustCompile(` && |; `)
	variables = regexp.MustCompile(`^\(?(?:[A-Z_]+=\S+ )*`)
	// inline is a command in the text of a page.
	inline = regexp.MustCompile("`(workflows-engine [a-z][^`\n]*)`")
)

// otherTools are those that the pages call besides the engine's programs, go and make. The flags of workflows-engine-temporal are checked in its
// module.
var otherTools = strings.Fields("cd cp do done fallocate for gh git kill ls mcp-publisher mkdir npm npx openssl pg_restore rm sed sudo tar temporal umask workflows-engine-temporal")

// checkOther checks a command that is not one of workflows-engine. Those of the server are checked beside it.
func checkOther(t *testing.T, line string) error {
	t.Helper()
	if strings.Count(line, ")") > strings.Count(line, "(") { // the subshell begins with an earlier command
		line = strings.TrimSuffix(line, ")")
	}
	list := words(t, variables.ReplaceAllString(line, ""))
	root := filepath.Join("..", "..")
	switch {
	case list[0] == "go" && len(list) > 2:
		for _, path := range list[2:] {
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(path, "..."))); err != nil {
				return err
			}
		}
	case list[0] == "make" && len(list) > 1:
		recipes, err := os.ReadFile(filepath.Join(root, "Makefile"))
		if err != nil {
			return err
		}
		for _, word := range list[1:] {
			if name, _, isVariable := strings.Cut(word, "="); isVariable && !bytes.Contains(recipes, []byte("$("+name)) ||
				!isVariable && !bytes.Contains(recipes, []byte("\n"+name+":")) {
				return fmt.Errorf("the Makefile has no %s", name)
			}
		}
	case list[0] != server && !slices.Contains(otherTools, list[0]):
		return errors.New("the test does not know this command")
	}
	return nil
}

// TestCommandsOfThePages: the commands on the pages exist, with their arguments and flags, and the settings that they export are accepted.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the pages are for a POSIX shell")
	}
	commands, settings := 0, 0
	for page, blocks := range pageBlocks(t, "sh") {
		all := continued.ReplaceAllString(strings.Join(blocks, ""), " ")
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", all).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", page, err, out)
		}
		for line := range strings.Lines(all) {
			for _, line := range separate.Split(comment.ReplaceAllString(strings.TrimSpace(line), ""), -1) {
				line = strings.TrimSuffix(redirect.ReplaceAllString(line, ""), " &")
				if setting, ok := strings.CutPrefix(line, "export "); ok {
					settings++
					if err := loadSetting(t, words(t, setting)[0]); err != nil {
						t.Errorf("%s: %s: %v", page, line, err)
					}
					continue
				}
				line = launcher.ReplaceAllString(line, "$1")
				err := error(nil)
				if arguments, ok := strings.CutPrefix(line, "workflows-engine "); ok {
					commands++
					err = checkCommand(words(t, arguments))
				} else if line != "" {
					err = checkOther(t, line)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
			}
		}
	}
	if commands < 40 || settings < 5 {
		t.Errorf("only %d commands and %d settings", commands, settings)
	}
}

// checkCommand reports what is wrong with the arguments of the program: the command, its flags or their number.
func checkCommand(arguments []string) error {
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &bytes.Buffer{}, now: time.Now}
	cmd, rest, err := newRoot(a).Find(arguments)
	if err != nil {
		return err
	}
	if !cmd.HasParent() {
		return errors.New("there is no such command")
	}
	if err := current(cmd); err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// current reports a command under a name that it had before.
func current(cmd *cobra.Command) error {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		if cmd.Hidden && cmd.Name() != "conformance" {
			return fmt.Errorf("%s is a former name", cmd.CommandPath())
		}
	}
	return nil
}

// TestCommandsInTextOfThePages: a command that a page names in its text exists, with its flags. What is left out, or stands in capitals
// for something, may be missing.
func TestCommandsInTextOfThePages(t *testing.T) {
	t.Parallel()
	found := 0
	for path, text := range pageTexts(t) {
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			found++
			arguments := strings.Fields(m[1])[1:]
			if len(arguments) > 0 && arguments[0] == "help" { // cobra adds it when a command is executed
				arguments = arguments[1:]
			}
			if len(arguments) == 0 {
				continue
			}
			cmd, rest, err := newRoot(&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &bytes.Buffer{}, now: time.Now}).Find(arguments)
			if err == nil && cmd.HasParent() {
				err = errors.Join(current(cmd), cmd.ParseFlags(rest))
			}
			if err != nil || !cmd.HasParent() {
				t.Errorf("%s: %s: %v", path, m[1], err)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d commands", found)
	}
}

// TestHelpListsEveryCommand: each command is in a group of the help, but for those that every program has.
func TestHelpListsEveryCommand(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &app{}
	root := newRoot(a)
	a.help(root, &out)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "version" && !strings.Contains(out.String(), "\n  "+c.Name()+" ") {
			t.Errorf("help does not list %s", c.Name())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines > 60 {
		t.Errorf("help has %d lines", lines)
	}
}

// TestHelpFits: no line of a command's help is longer than the terminal, but for examples, a usage line, and lines that a description indents.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	a := &app{columns: func() int { return 80 }}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		var out strings.Builder
		a.help(c, &out)
		for line := range strings.Lines(strings.Replace(out.String(), c.Example, "", 1)) {
			line = strings.TrimRight(line, "\n")
			kept := strings.TrimSpace(line) == c.UseLine() || strings.HasPrefix(line, " ") && strings.Contains(c.Long, line)
			if utf8.RuneCountInString(line) > 80 && !kept {
				t.Errorf("%s: %s", c.CommandPath(), line)
			}
		}
		for _, c := range c.Commands() {
			check(c)
		}
	}
	check(newRoot(a))
}

// TestHelpWidth: help that no terminal shows has the width of COLUMNS, or 80 columns. It never has more than 100, which examples keep, too.
func TestHelpWidth(t *testing.T) {
	t.Parallel()
	for columns, want := range map[string]int{"": 80, "none": 80, "0": 80, "70": 70, "100": 100, "250": 100} {
		a, _, _ := newTestApp(t, nil, noon)
		a.env.Variables = []string{"COLUMNS=" + columns}
		var out strings.Builder
		root := newRoot(a)
		recovering, _, err := root.Find([]string{"recover"})
		if err != nil {
			t.Fatal(err)
		}
		a.help(recovering, &out)
		widest := 0
		for line := range strings.Lines(strings.Replace(out.String(), recovering.Example, "", 1)) {
			widest = max(widest, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
		}
		if widest > want || widest < want-10 {
			t.Errorf("COLUMNS=%s: the longest line has %d characters", columns, widest)
		}
		var check func(c *cobra.Command)
		check = func(c *cobra.Command) {
			for line := range strings.Lines(c.Example) {
				if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 100 {
					t.Errorf("%s: %s", c.CommandPath(), line)
				}
			}
			for _, c := range c.Commands() {
				check(c)
			}
		}
		check(root)
	}
}

// TestTheUnitOfThePage: the unit of systemd that docs/deploy.md shows calls the worker, and does not restart it after the status
// of wrong settings.
func TestTheUnitOfThePage(t *testing.T) {
	t.Parallel()
	unit := pageBlock(t, "docs/deploy.md", "ini", "")
	command := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/workflows-engine (.*)$`).FindStringSubmatch(unit)
	if command == nil {
		t.Fatalf("the unit starts nothing:\n%s", unit)
	}
	if err := checkCommand(strings.Fields(command[1])); err != nil || !strings.Contains(unit, fmt.Sprintf("\nRestartPreventExitStatus=%d\n", exitUsage)) {
		t.Errorf("%v in\n%s", err, unit)
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
			case page != "docs/executors.md":
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
