package timeline_test

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

	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// The sizes of the picture of a terminal, in pixels.
const (
	columnWidth = 8.4
	rowHeight   = 20
	margin      = 16
)

var words = regexp.MustCompile(`\S+`)

// looks are the attributes of texts in the colours of a dark terminal.
var looks = map[timeline.Style]string{
	timeline.Good: ` fill="#7ee787"`, timeline.Bad: ` fill="#ff7b72"`, timeline.Waiting: ` fill="#e3b341"`, timeline.Faint: ` fill="#8b949e"`,
	timeline.Bold: ` font-weight="bold"`,
}

// terminalSVG draws lines as a terminal shows them.
func terminalSVG(lines []timeline.Line, columns int) string {
	width, height := float64(columns)*columnWidth+2*margin, len(lines)*rowHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"%.0f\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	b.WriteString("<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n" +
		"<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#e6edf3\">\n")
	for i, line := range lines {
		column := 0
		for _, part := range line.Parts {
			for _, word := range words.FindAllStringIndex(part.Text, -1) {
				// Each word says where it begins, because the fonts of readers are not equally wide.
				x := margin + float64(column+utf8.RuneCountInString(part.Text[:word[0]]))*columnWidth
				fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\"%s>", x, margin+i*rowHeight+14, looks[part.Style])
				_ = xml.EscapeText(&b, []byte(part.Text[word[0]:word[1]])) // a strings.Builder takes everything
				b.WriteString("</text>\n")
			}
			column += utf8.RuneCountInString(part.Text)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// TestThePictureOfTheReadme draws a recorded run as a terminal shows it.
func TestThePictureOfTheReadme(t *testing.T) {
	t.Parallel()
	const columns = 104
	tree, now := read(t, "trip").at(4_200 * time.Millisecond)
	picture := terminalSVG(tree.Lines(now, columns, 40), columns)
	path := filepath.Join("..", "..", "docs", "run.svg")
	if *update {
		if err := os.WriteFile(path, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != picture {
		t.Errorf("docs/run.svg differs (%v; go test ./internal/timeline -update rewrites it)", err)
	}
}

// TestThePageShowsATree: what docs/operations.md shows of a run is the recorded one, a terminal's width wide.
func TestThePageShowsATree(t *testing.T) {
	t.Parallel()
	tree, now := read(t, "trip").at(2500 * time.Millisecond)
	var b strings.Builder
	for _, line := range tree.Lines(now, 117, 40) {
		for _, part := range line.Parts {
			b.WriteString(part.Text)
		}
		b.WriteString("\n")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil || strings.Count(string(page), "\n```text\n") != 1 || !strings.Contains(string(page), "\n```text\n"+b.String()+"```\n") {
		t.Errorf("docs/operations.md shows another tree (%v) than\n%s", err, b.String())
	}
}
