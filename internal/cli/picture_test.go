package cli

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// The sizes of the picture of a terminal, in pixels.
const (
	columnWidth = 8.4
	rowHeight   = 20
	margin      = 16
)

// theme holds the colours of a terminal, the texts by the codes that the palette writes.
type theme struct {
	back, text string
	codes      map[string]string
}

var themes = map[string]theme{
	"dark": {"#0d1117", "#e6edf3", map[string]string{
		"32": ` fill="#7ee787"`, "31": ` fill="#ff7b72"`, "33": ` fill="#e3b341"`, "2": ` fill="#8b949e"`, "1": ` font-weight="bold"`,
	}},
	"light": {"#f6f8fa", "#1f2328", map[string]string{
		"32": ` fill="#1a7f37"`, "31": ` fill="#cf222e"`, "33": ` fill="#9a6700"`, "2": ` fill="#59636e"`, "1": ` font-weight="bold"`,
	}},
}

var (
	colour       = regexp.MustCompile(`\x1b\[([0-9]+)m`)
	wordsOf      = regexp.MustCompile(`\S+`)
	runID        = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	tookInAll    = regexp.MustCompile(` in [0-9.]+m?s\b`)
	milliseconds = regexp.MustCompile(` +[0-9.]+m?s\b`)
)

// terminalSVG draws the output of a command as a terminal shows it.
func terminalSVG(text string, look theme) string {
	lines, columns := strings.Split(strings.TrimRight(text, "\n"), "\n"), 0
	for _, line := range lines {
		columns = max(columns, utf8.RuneCountInString(colour.ReplaceAllString(line, "")))
	}
	width, height := float64(columns)*columnWidth+2*margin, len(lines)*rowHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"%.0f\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"%s\"/>\n", look.back)
	fmt.Fprintf(&b, "<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"%s\">\n", look.text)
	for i, line := range lines {
		column, style := 0, ""
		draw := func(part string) {
			for _, word := range wordsOf.FindAllStringIndex(part, -1) {
				// Each word says where it begins, because the fonts of readers are not equally wide.
				x := margin + float64(column+utf8.RuneCountInString(part[:word[0]]))*columnWidth
				fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\"%s>", x, margin+i*rowHeight+14, look.codes[style])
				_ = xml.EscapeText(&b, []byte(part[word[0]:word[1]])) // a strings.Builder takes everything
				b.WriteString("</text>\n")
			}
			column += utf8.RuneCountInString(part)
		}
		at := 0
		for _, m := range colour.FindAllStringSubmatchIndex(line, -1) {
			draw(line[at:m[0]])
			at, style = m[1], line[m[2]:m[3]]
		}
		draw(line[at:])
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// TestThePictureOfTheReadme draws the output of the README's command at a terminal, where a person answers yes.
func TestThePictureOfTheReadme(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	_, after, _ := strings.Cut(string(enginetest.Must(os.ReadFile(filepath.Join(root, "README.md")))), "<!-- run -->\n```sh\ngo run ./cmd/")
	line, _, _ := strings.Cut(after, "\n")
	requirePictures(t, "refund", shownBy(t, root, line))
}

// TestThePictureOfARetry draws what docs/troubleshoot.md does: a run fails at a mistake in its definition, and a retry with the corrected one
// does not ask the model again.
func TestThePictureOfARetry(t *testing.T) {
	t.Parallel()
	page := string(enginetest.Must(os.ReadFile(filepath.Join("..", "..", "docs", "troubleshoot.md"))))
	change := regexp.MustCompile("`wrong.workflow.yaml`, says `(.*)` instead of `(.*)`(?s:.*?)```sh\n(.*\n)(.*\n)```").FindStringSubmatch(page)
	if change == nil {
		t.Fatal("the page does not say what is wrong, and how it is retried")
	}
	folder := t.TempDir()
	right := string(enginetest.Must(os.ReadFile(filepath.Join("..", "..", "examples", "refund", "refund.workflow.yaml"))))
	wrong := strings.Replace(right, change[2], change[1], 1)
	if wrong == right {
		t.Fatalf("the page changes nothing: %q", change[0])
	}
	for name, text := range map[string]string{"refund.workflow.yaml": right, "wrong.workflow.yaml": wrong} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	requirePictures(t, "retry", shownBy(t, folder, strings.TrimSpace(change[3]), strings.TrimSpace(change[4])))
}

// TestThePictureOfAForm draws the form that a host showed, as "make hosts" recorded it.
func TestThePictureOfAForm(t *testing.T) {
	t.Parallel()
	text := string(enginetest.Must(os.ReadFile(filepath.Join("..", "hostcheck", "testdata", "claude-code-form.txt"))))
	title, rest, ok := strings.Cut(text, "\n")
	if !ok || !strings.Contains(rest, "Accept") {
		t.Fatalf("no form: %q", text)
	}
	rest = strings.ReplaceAll(rest, "❯", "\x1b[32m❯\x1b[0m")
	requirePictures(t, "form", "\x1b[1m"+title+"\x1b[0m\n"+strings.ReplaceAll(rest, "run RUN", "run 01a2279d-921d-7e79-955c-703aeb2f2aba"))
}

// shownBy runs commands in a folder, one after the other, at a terminal where a person answers yes, and returns what it shows. Durations, ids and the place
// of the database differ from run to run, so they are drawn alike.
func shownBy(t *testing.T, folder string, commands ...string) string {
	t.Helper()
	var all strings.Builder
	store := filepath.Join(t.TempDir(), "runs.db")
	for _, line := range commands {
		arguments := words(t, line)[1:]
		for i, argument := range arguments {
			if strings.HasSuffix(argument, ".yaml") {
				arguments[i] = filepath.Join(folder, filepath.FromSlash(argument))
			}
		}
		var out strings.Builder
		a := &app{
			stdin: strings.NewReader("yes\n"), stdout: &out, stderr: &out, now: time.Now, interactive: true, paint: palette{on: true},
			env: config.Environment{Variables: []string{"WORKFLOW_ENGINE_STORE_PATH=" + store}},
		}
		got := a.execute(t.Context(), arguments)
		if want := strings.Contains(line, "wrong."); (got == exitFailed) != want || !want && got != exitOK {
			t.Fatalf("%s: exit status %d\n%s", line, got, out.String())
		}
		all.WriteString("$ " + line + "\n" + strings.Replace(out.String(), "\n> ", "\n> \x1b[1myes\x1b[0m\n", 1))
	}
	text := strings.ReplaceAll(all.String(), store, "~/.local/share/workflows-engine/runs.db")
	text = strings.ReplaceAll(text, folder+string(filepath.Separator), "")
	text = runID.ReplaceAllString(text, "01a2279d-921d-7e79-955c-703aeb2f2aba")
	text = tookInAll.ReplaceAllString(text, " in 3ms")
	return milliseconds.ReplaceAllStringFunc(text, func(found string) string { return fmt.Sprintf("%*s", len(found), "3ms") })
}

// requirePictures compares the pictures of a text with those in docs/pictures, in both themes.
func requirePictures(t *testing.T, of, text string) {
	t.Helper()
	for name, look := range themes {
		picture := terminalSVG(text, look)
		path := filepath.Join("..", "..", "docs", "pictures", of+"-"+name+".svg")
		if *update {
			if err := os.WriteFile(path, []byte(picture), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != picture {
			t.Errorf("%s differs (%v; go test ./internal/cli -run TestThePicture -update rewrites it)", path, err)
		}
	}
}

// TestThePictureOfTheDefinition: the refund example shows what the command graph draws of the README's workflow.
func TestThePictureOfTheDefinition(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: time.Now}
	if got := a.execute(t.Context(), []string{"graph", filepath.Join("..", "..", "examples", "refund", "refund.workflow.yaml"), "--format", "svg"}); got != exitOK {
		t.Fatalf("exit status %d\n%s", got, out.String())
	}
	path := filepath.Join("..", "..", "docs", "pictures", "refund-graph.svg")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != out.String() {
		t.Errorf("%s differs (%v; go test ./internal/cli -run TestThePicture -update rewrites it)", path, err)
	}
}
