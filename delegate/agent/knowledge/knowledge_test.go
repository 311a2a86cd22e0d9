package knowledge_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/knowledge"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type object = map[string]any

// write makes a folder of files.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

var office = map[string]string{
	"hr/leave.md":   "# Leave\n\nEverybody has 30 days.\n\n## Carry-over\n\nUp to five days go to the next year.\n\n### Parents\n\nTen days.\n\n```\n# no heading\n```\n\n## Sick days\n\nTell the office. Sickness is no leave.\n",
	"hr/pay.txt":    "Salaries are paid on the 25th.\n",
	"hr/people.csv": "name,room\nAda,12\nGrace,14\n",
	"hr/rates.json": `{"mileage": {"car": 0.3, "bicycle": 0.05}, "Hotel per night": 120}`,
	"hr/page.html": `<html><head><title>Intranet</title><style>p{color:red}</style><script>var leave = "<h1>no</h1>"</script></head><body>
<h1>Canteen</h1><p>Lunch is at <b>noon</b> &amp; costs 5&nbsp;euros.</p><h2 id=x title='a>b'>Vegan days</h2><ul><li>Tuesday<li>Friday</ul><!-- <h2>hidden</h2> --></body>`,
	"hr/scan.pdf":        "%PDF-1.4",
	"hr/.secret.md":      "# Hidden\n\ncarry",
	"sales/q1/plan.md":   "# Plan\n\nSell more widgets in spring.\n",
	"sales/q2/plan.md":   "# Plan\n\nSell more widgets in summer.\n",
	"finance/secret.md":  "# Salaries\n\nAda earns 1000.\n",
	"hr/deep/a/b/c/d.md": "# Deep\n\nParental leave is deep.\n",
}

func tools(t testing.TB, folder string, bases ...string) *knowledge.Toolset {
	t.Helper()
	return enginetest.Must(enginetest.Must(knowledge.New(knowledge.Config{Path: folder})).Tools(bases))
}

func call(t testing.TB, set agent.Toolset, tool string, arguments object) (object, *activities.Failure) {
	t.Helper()
	out, err := set.Call(t.Context(), agent.Call{Name: tool, Arguments: arguments})
	if err == nil {
		plain, err := jsonvalue.Normalize(out)
		if err != nil || !jsonvalue.Equal(plain, out) {
			t.Errorf("%s: the result is not plain JSON: %v", tool, err)
		}
		return out.(object), nil
	}
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	return nil, failure
}

// refs are those of a search, best first.
func refs(t testing.TB, set agent.Toolset, query string) []string {
	t.Helper()
	out, failure := call(t, set, knowledge.Search, object{"query": query})
	if failure != nil {
		t.Fatal(failure)
	}
	list := []string{}
	for _, r := range out["results"].([]any) {
		list = append(list, r.(object)["ref"].(string))
	}
	return list
}

func TestSearch(t *testing.T) {
	t.Parallel()
	set := tools(t, write(t, office), "hr", "sales/q1")
	for query, want := range map[string]string{
		"How many days may I carry over to next year?": "hr/leave.md#carry-over",
		"vegan lunch day":          "hr/page.html#vegan-days",
		"When is lunch":            "hr/page.html#canteen",
		"salary salaries paid":     "hr/pay.txt#part-1",
		"Where is Grace's room":    "hr/people.csv#rows-2-3",
		"mileage of a BICYCLE":     "hr/rates.json#mileage",
		"hotel":                    "hr/rates.json#hotel-per-night",
		"widget":                   "sales/q1/plan.md#plan",
		"parental leave deep":      "hr/deep/a/b/c/d.md#deep",
		"summer widgets":           "sales/q1/plan.md#plan",
		"the of and":               "",
		"":                         "",
		"earns 1000":               "",
		"hidden":                   "",
		"color":                    "",
		"no such words whatsoever": "",
	} {
		got := refs(t, set, query)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%q: %q, want %q first", query, got, want)
		}
	}
	out, _ := call(t, set, knowledge.Search, object{"query": "widgets", "base": "sales/q1"})
	if want := (object{"results": []any{object{"ref": "sales/q1/plan.md#plan", "title": "Plan", "score": 1.0, "excerpt": "Sell more widgets in spring."}}, "matches": 1.0}); !jsonvalue.Equal(out, want) {
		t.Errorf("%v", out)
	}
	if _, failure := call(t, set, knowledge.Search, object{"query": "widgets", "base": "sales/q2"}); failure == nil || failure.Code != "KNOWLEDGE_REF_INVALID" {
		t.Errorf("%v", failure)
	}
	if got := refs(t, tools(t, write(t, office), "hr"), "days leave tuesday salaries room"); len(got) != knowledge.DefaultMaxSearchResults {
		t.Errorf("%d results: %q", len(got), got)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	set := tools(t, write(t, office), "hr", "sales/q1")
	for ref, want := range map[string]string{
		"hr/leave.md#carry-over":  "## Carry-over\n\nUp to five days go to the next year.\n\n### Parents\n\nTen days.\n\n```\n# no heading\n```\n\n",
		"hr/leave.md#parents":     "### Parents\n\nTen days.\n\n```\n# no heading\n```\n\n",
		"hr/people.csv#rows-2-3":  "name,room\nAda,12\nGrace,14\n",
		"hr/people.csv":           "name,room\nAda,12\nGrace,14\n",
		"hr/page.html#canteen":    "Canteen\nLunch is at noon & costs 5\u00a0euros.\nVegan days\n- Tuesday\n- Friday\n",
		"hr/page.html#vegan-days": "Vegan days\n- Tuesday\n- Friday\n",
		"hr/pay.txt":              "Salaries are paid on the 25th.\n",
		"sales/q1/plan.md#":       "# Plan\n\nSell more widgets in spring.\n",
	} {
		out, failure := call(t, set, knowledge.Read, object{"ref": ref})
		if failure != nil || strings.ReplaceAll(out["text"].(string), "5 euros", "5\u00a0euros") != want {
			t.Errorf("%s: %q, %v", ref, out["text"], failure)
		}
	}
	for ref, code := range map[string]string{
		"hr/gone.md": "KNOWLEDGE_REF_INVALID", "hr/leave.md#gone": "KNOWLEDGE_REF_INVALID", "hr": "KNOWLEDGE_REF_INVALID", "": "KNOWLEDGE_REF_INVALID",
		"finance/secret.md": "KNOWLEDGE_REF_INVALID", "sales/q2/plan.md": "KNOWLEDGE_REF_INVALID", "sales/q1": "KNOWLEDGE_REF_INVALID", "sales/q10/x.md": "KNOWLEDGE_REF_INVALID",
		"hr/../finance/secret.md": "KNOWLEDGE_REF_INVALID", "/etc/passwd": "KNOWLEDGE_REF_INVALID", "hr//leave.md": "KNOWLEDGE_REF_INVALID", "hr/./leave.md": "KNOWLEDGE_REF_INVALID",
		`hr\leave.md`: "KNOWLEDGE_REF_INVALID", "hr/.secret.md": "KNOWLEDGE_REF_INVALID", "hr/leave.md\x00": "KNOWLEDGE_REF_INVALID", "\xff/leave.md": "KNOWLEDGE_REF_INVALID",
		"hr/%2e%2e/finance/secret.md": "KNOWLEDGE_REF_INVALID", "hr/deep": "KNOWLEDGE_FORMAT_UNSUPPORTED", "hr/scan.pdf": "KNOWLEDGE_FORMAT_UNSUPPORTED",
	} {
		if out, failure := call(t, set, knowledge.Read, object{"ref": ref}); failure == nil || failure.Code != code || strings.Contains(failure.Message, os.TempDir()) {
			t.Errorf("%q: %v, %v", ref, out, failure)
		}
	}
	if _, failure := call(t, set, knowledge.Read, object{"ref": "hr/leave.md#cary-over"}); !strings.Contains(failure.Message, `did you mean "carry-over"?`) {
		t.Errorf("%v", failure)
	}
}

// A long text is read in pieces, which together are the text whatever its characters are.
func TestReadInPieces(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Süßölgefäß 日本語 🙂\n", 40)
	folder := write(t, map[string]string{"b/long.txt": text})
	for _, limit := range []int{1, 7, 100, 1 << 20} {
		set := enginetest.Must(enginetest.Must(knowledge.New(knowledge.Config{Path: folder, MaxReadBytes: limit})).Tools([]string{"b"}))
		if limit < 7 {
			text = text[:len("Süßölgefäß 日本語 🙂")]
		}
		got, offset, rounds := "", 0.0, 0
		for more := true; more && rounds < 20_000; rounds++ {
			out, failure := call(t, set, knowledge.Read, object{"ref": "b/long.txt", "offset": offset})
			if failure != nil {
				t.Fatal(failure)
			}
			piece := out["text"].(string)
			if !utf8.ValidString(piece) || len(piece) > max(limit, utf8.UTFMax) {
				t.Fatalf("limit %d: a piece of %d bytes: %q", limit, len(piece), problemOf(piece))
			}
			if got += piece; limit < 7 && len(got) >= len(text) {
				break
			}
			offset, more = out["next_offset"].(float64)
		}
		if want := strings.Repeat("Süßölgefäß 日本語 🙂\n", 40); limit >= 7 && got != want || limit < 7 && got != text {
			t.Errorf("limit %d: %d bytes of %d", limit, len(got), len(want))
		}
	}
}

func problemOf(s string) string { return s[:min(len(s), 20)] }

// Nothing leads out of a base: no symbolic link to a file, to a folder or to another base, and no pipe is waited for.
func TestNothingLeadsOut(t *testing.T) {
	t.Parallel()
	folder := write(t, office)
	outside := write(t, map[string]string{"key.md": "# Key\n\nstolen"})
	for link, to := range map[string]string{
		"hr/out.md": filepath.Join(outside, "key.md"), "hr/up.md": "../finance/secret.md", "hr/dir": outside, "hr/root": "/", "hr/loop.md": "loop.md",
		"hr/inside.md": "deep/a/b/c/d.md", "hr/dead.md": "nothing.md", "linked": "finance", "away": outside,
	} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Skipf("this user may make no symbolic links: %v", err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "hr", "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := tools(t, folder, "hr")
	for _, query := range []string{"stolen key", "Ada earns 1000"} {
		if got := refs(t, set, query); slices.ContainsFunc(got, func(ref string) bool {
			return !strings.HasPrefix(ref, "hr/people.csv") && !strings.HasPrefix(ref, "hr/inside")
		}) {
			t.Errorf("%q: %q", query, got)
		}
	}
	for _, ref := range []string{"hr/out.md", "hr/up.md", "hr/dir/key.md", "hr/root/etc/passwd.txt", "hr/loop.md", "hr/dead.md", "hr/pipe.md"} {
		if out, failure := call(t, set, knowledge.Read, object{"ref": ref}); failure == nil || failure.Code != "KNOWLEDGE_REF_INVALID" {
			t.Errorf("%s: %v, %v", ref, out, failure)
		}
	}
	if out, failure := call(t, set, knowledge.Read, object{"ref": "hr/inside.md"}); failure != nil || !strings.Contains(out["text"].(string), "Parental") {
		t.Errorf("a link within the base: %v", failure)
	}
	library := enginetest.Must(knowledge.New(knowledge.Config{Path: folder}))
	if err := library.Check("away"); err == nil {
		t.Error("a base that is elsewhere is taken")
	}
	for _, base := range []string{"", ".", "..", "../x", "/", "hr/../finance", ".git", "hr/leave.md", "gone", "hr/", "a#b", "a\x00", "C:"} {
		if _, err := library.Tools([]string{base}); err == nil {
			t.Errorf("base %q is taken", base)
		}
	}
}

// The index is renewed by size and time: what is new is found, what is gone is not.
func TestIndexIsRenewed(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"b/one.md": "# One\n\napples\n", "b/two.md": "# Two\n\npears\n"})
	set := tools(t, folder, "b")
	expect := func(query string, want ...string) {
		t.Helper()
		if got := refs(t, set, query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	expect("apples", "b/one.md#one")
	one := filepath.Join(folder, "b", "one.md")
	info := enginetest.Must(os.Stat(one))
	if err := errors.Join(os.WriteFile(one, []byte("# One\n\nplums!\n"), 0o600), os.Chtimes(one, time.Time{}, info.ModTime().Add(time.Second)),
		os.Remove(filepath.Join(folder, "b", "two.md")), os.WriteFile(filepath.Join(folder, "b", "three.md"), []byte("no heading, cherries"), 0o600)); err != nil {
		t.Fatal(err)
	}
	expect("apples")
	expect("plum", "b/one.md#one")
	expect("pears")
	expect("cherry cherries", "b/three.md#top")
	// The same size and time is the same file.
	if err := errors.Join(os.WriteFile(one, []byte("# One\n\ngrape!\n"), 0o600), os.Chtimes(one, time.Time{}, info.ModTime().Add(time.Second))); err != nil {
		t.Fatal(err)
	}
	expect("grape")
}

// Hostile files cost neither the search nor the process: they are left out, by name, or read as far as they go.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("word ", 2<<20) // 10 MB
	files := map[string]string{
		"b/big.md": big, "b/latin.txt": "S\xfc\xdf", "b/zero.txt": "a\x00b", "b/odd.txt": "\xff\xfea", "b/empty.md": "",
		"b/utf16.txt": "\xff\xfem\x00a\x00n\x00g\x00o\x00", "b/utf16be.txt": "\xfe\xff\x00k\x00i\x00w\x00i", "b/bom.md": "\ufeff# Bommed\r\n\r\nlychee\r\n",
		"b/broken.json": `{"a": papaya`, "b/deep.json": strings.Repeat("[", 100_000), "b/quote.csv": "a,b\n\"open,guava\nx,y\n",
		"b/heads.md": strings.Repeat("# Same\n\nmelon\n", 20_000), "b/unclosed.html": "<script>" + strings.Repeat("</s'", 200_000), "b/tag.html": "quince <p title='x" + strings.Repeat("<", 100_000),
		"b/line.txt": strings.Repeat("x", 3<<20) + " fig", "b/wide.csv": strings.Repeat("column,", 300_000) + "\n" + strings.Repeat("date,1\n", 100_000),
		"b/slash.md": "# ../../etc/passwd#x\n\npomelo\n", "b/array.json": "[" + strings.Repeat(`"kumquat",`, 20_000) + `"end"]`, "b/list.json": `["satsuma", {"a": "tangelo"}]`,
	}
	set := tools(t, write(t, files), "b")
	for query, want := range map[string]string{
		"mango": "b/utf16.txt#part-1", "kiwi": "b/utf16be.txt#part-1", "lychee": "b/bom.md#bommed", "papaya": "b/broken.json#part-1", "guava": "b/quote.csv#rows-2-2",
		"melon": "b/heads.md#same", "quince": "b/tag.html#top", "pomelo": "b/slash.md#etcpasswdx", "kumquat": "b/array.json#item-0", "tangelo": "b/list.json#item-1",
	} {
		got := refs(t, set, query)
		if len(got) == 0 || got[0] != want {
			t.Errorf("%s: %q", query, got)
			continue
		}
		if out, failure := call(t, set, knowledge.Read, object{"ref": got[0]}); failure != nil || !strings.Contains(strings.ToLower(out["text"].(string)), query) {
			t.Errorf("%s: %v, %v", got[0], out, failure)
		}
	}
	out, _ := call(t, set, knowledge.Search, object{"query": "word"})
	var left []string
	for _, f := range out["left_out"].([]any) {
		left = append(left, fmt.Sprint(f.(object)["ref"], ": ", f.(object)["reason"]))
	}
	if want := []string{
		"b/big.md: it is larger than 4 MiB", "b/latin.txt: it is not text in UTF-8", "b/odd.txt: it is not text in UTF-8", "b/zero.txt: it is not text in UTF-8",
	}; !slices.Equal(left, want) {
		t.Errorf("left out: %q", left)
	}
	for ref, code := range map[string]string{"b/big.md": "KNOWLEDGE_FORMAT_UNSUPPORTED", "b/latin.txt": "KNOWLEDGE_FORMAT_UNSUPPORTED"} {
		if _, failure := call(t, set, knowledge.Read, object{"ref": ref}); failure == nil || failure.Code != code {
			t.Errorf("%s: %v", ref, failure)
		}
	}
}

// What a node names narrows the bases, and never widens them.
func TestNarrow(t *testing.T) {
	t.Parallel()
	set := tools(t, write(t, office), "hr", "sales/q1")
	for names, want := range map[string]string{
		"hr": `"hr"`, "sales": `"sales/q1"`, "hr/deep": `"hr/deep"`, "hr finance": `"hr" finance`, "sales/q2": "sales/q2", "hr/gone": "hr/gone", "": "", "sales/q1 sales": `"sales/q1"`, "hr/..": "hr/..",
	} {
		less, missing := set.Narrow(strings.Fields(names))
		text := enginetest.Must(less.(agent.Prompter).Prompt())
		_, text, _ = strings.Cut(strings.TrimSuffix(text, "."), ": ")
		if got := strings.TrimSpace(text + " " + strings.Join(missing, " ")); got != want {
			t.Errorf("%q: %s, want %s", names, got, want)
		}
		if listed := enginetest.Must(less.Tools(t.Context())); (len(listed) == 0) != (text == "") {
			t.Errorf("%q: %d tools", names, len(listed))
		}
	}
	less, _ := set.Narrow([]string{"hr/deep"})
	if _, failure := call(t, less, knowledge.Read, object{"ref": "hr/pay.txt"}); failure == nil {
		t.Error("a file outside of what the node has left is read")
	}
	if got := refs(t, less, "leave"); !slices.Equal(got, []string{"hr/deep/a/b/c/d.md#deep"}) {
		t.Errorf("%q", got)
	}
}

func TestNoFolder(t *testing.T) {
	t.Parallel()
	if _, err := knowledge.New(knowledge.Config{Path: filepath.Join(t.TempDir(), "gone")}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}
