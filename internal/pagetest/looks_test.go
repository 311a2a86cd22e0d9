package pagetest

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// pages are the pages of a site that fillLooks filled, with the names of their screenshots; "" for pages without one.
var pages = []struct{ name, path string }{
	{"start", "/"},
	{"", "/runs"},
	{"question", "/runs/pay-1/questions/ask%231"},
	{"form", "/runs/claim-1/questions/details%231"},
	{"run", "/runs/tour-1"},
	{"failed", "/runs/ship-1"},
	{"", "/workflows/greet"},
	{"", "/runs/plan-1/questions/steps%231"},
	{"", "/runs/pay-2/questions/ask%231"},
	{"", "/runs/pay-3/questions/ask%231"},
	{"", "/runs/ship-1/visits/weigh/1"},
	{"", "/runs/tour-1/history"},
	{"", "/runs/tour-1/history?at=5"},
	{"", "/runs?definition=nothing"},
	{"", "/runs/unknown"},
	{"", "/workflows"},
	{"", "/system"},
}

func fillLooks(s *site) {
	ink := map[string]any{"item": "Ink, black", "price": 7.5}
	s.start("pay", "pay-1", map[string]any{
		"supplier": "Ink & Co", "total": 12.5, "lines": []any{ink, map[string]any{"item": "Paper, 500 sheets", "price": 5.0}},
		"note": "Delivered on Monday, complete.\nThe price of the paper has changed since the last order.",
	})
	s.start("pay", "pay-3", map[string]any{
		"supplier": "Ink & Co", "total": 12.5, "lines": []any{ink, map[string]any{"item": "Paper " + strings.Repeat("very long ", 12), "price": 5.0}},
		"note": "First line.\nSecond line with " + strings.Repeat("a-word-without-an-end", 12),
	})
	s.start("pay", "pay-2", map[string]any{"supplier": "Pens Ltd", "total": 9.0})
	s.resume("pay-2", map[string]any{"approved": true})
	s.start("claim", "claim-1", nil)
	s.start("plan", "plan-1", nil)
	s.start("ship", "ship-1", map[string]any{"kilos": 30.0})
	s.start("greet", "greet-1-with-a-long-id-"+strings.Repeat("0123456789", 6), map[string]any{"name": "Ada", "times": 2.0})
	s.start("tour", "tour-1", map[string]any{"cities": []any{"Ghent", "Lund", "Pisa"}})
	s.perform("tour-1", "draft", map[string]any{"good": false})
	s.perform("tour-1", "draft", map[string]any{"good": true})
	s.perform("tour-1", "rate", map[string]any{"points": 1.0})
}

// TestPagesAreAccessible: axe finds nothing on any page, light and dark, and no page is wider than a small window.
// With -update it writes the screenshots.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := newSite(t, fillLooks)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			b := s.enter(t)
			for _, page := range pages {
				b.window(1280, 800, scheme)
				b.open(s.origin + page.path)
				for _, violation := range b.axe() {
					t.Errorf("%s, %s: %s", page.path, scheme, violation)
				}
				s.picture(b, page.name, scheme, 1280)
				if scheme == "dark" && !*update {
					continue
				}
				for _, width := range []int64{360, 320} {
					b.window(width, 700, scheme)
					if wide := eval[string](b, widest); wide != "" {
						t.Errorf("%s is too wide for %d px: %s", page.path, width, wide)
					}
					if width == 360 {
						s.picture(b, page.name, scheme, 360)
					}
				}
			}
		})
	}
}

// widest describes the elements that make the page wider than the window, "" if it is not.
const widest = `(() => {
	const root = document.documentElement;
	if (root.scrollWidth <= innerWidth) return "";
	const out = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 0.5);
	return root.scrollWidth + " px: " + out.slice(0, 4).map(e => e.tagName + "." + (e.getAttribute("class") || "") + " " + e.innerText?.slice(0, 40)).join("; ");
})()`

// picture writes a screenshot, with few colours for a small file.
func (s *site) picture(b *tab, name, scheme string, width int) {
	if !*update || name == "" {
		return
	}
	b.Helper()
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.must(err)
	full, err := png.Decode(bytes.NewReader(shot))
	b.must(err)
	var out bytes.Buffer
	b.must((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, fewColours(full)))
	folder := filepath.Join("testdata", "screenshots")
	b.must(os.MkdirAll(folder, 0o755))
	b.must(os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), out.Bytes(), 0o644))
}

// fewColours returns an image with its 32 most frequent colours.
func fewColours(full image.Image) image.Image {
	count := map[color.Color]int{}
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			count[full.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	few := image.NewPaletted(full.Bounds(), color.Palette(colours[:min(32, len(colours))]))
	draw.Draw(few, few.Bounds(), full, image.Point{}, draw.Src)
	return few
}
