package knowledge

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// read returns the text that a reference names, from an offset on.
func (l *Library) read(ref string, bases []string, offset int) (any, error) {
	name, slug, cut := strings.Cut(ref, "#")
	base := ""
	for _, b := range bases {
		if within(name, b) && len(b) > len(base) && name != b {
			base = b
		}
	}
	switch {
	case !plainPath(name):
		return nil, activities.Fail(problem.KnowledgeRefInvalid, "%q is not a reference: write base/file.md#section, as %s returns it", problem.Clip(ref, problem.MaxQuoted), Search)
	case base == "":
		return nil, activities.Fail(problem.KnowledgeRefInvalid, "%q is in no knowledge base; there is %s", problem.Clip(name, problem.MaxQuoted), problem.AndList(bases))
	}
	sections, err := l.load(base, strings.TrimPrefix(name, base+"/"))
	if err != nil {
		return nil, refused(name, err)
	}
	text, ok := textOf(sections, slug, cut && slug != "")
	if !ok {
		var slugs []string
		for i := range sections {
			slugs = append(slugs, sections[i].slug)
		}
		hint := suggest.DidYouMean(slug, slugs)
		if hint == "" {
			hint = "read it without #" + problem.Clip(slug, problem.MaxQuoted)
		}
		return nil, activities.Fail(problem.KnowledgeRefInvalid, "%q has no section %q; %s", problem.Clip(name, problem.MaxQuoted), problem.Clip(slug, problem.MaxQuoted), hint)
	}
	out := map[string]any{"ref": strings.TrimSuffix(ref, "#"), "bytes": float64(len(text))}
	from := boundary(text, offset)
	to := boundary(text, from+l.config.MaxReadBytes)
	if to == from && to < len(text) { // the limit is less than a character
		_, n := utf8.DecodeRuneInString(text[from:])
		to += n
	}
	out["text"] = text[from:to]
	if from > 0 {
		out["offset"] = float64(from)
	}
	if to < len(text) {
		out["next_offset"] = float64(to)
	}
	return out, nil
}

// boundary is the beginning of the character at an offset, or the end.
func boundary(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// textOf is the text of a section with those below it, or of the file.
func textOf(sections []section, slug string, one bool) (string, bool) {
	i := 0
	if one {
		if i = slices.IndexFunc(sections, func(s section) bool { return s.slug == slug }); i < 0 {
			return "", false
		}
	}
	var text strings.Builder
	text.WriteString(sections[i].lead)
	for j := i; j < len(sections); j++ {
		if one && j > i && sections[j].level <= sections[i].level {
			break
		}
		text.WriteString(sections[j].text)
	}
	return text.String(), true
}

// badFile is the code of the reason why a file cannot be read.
type badFile struct {
	code problem.Code
	text string
}

func (e *badFile) Error() string { return e.text }

// refused returns the failure of a file that cannot be read.
func refused(name string, err error) error {
	name = problem.Clip(name, problem.MaxQuoted)
	if bad, ok := errors.AsType[*badFile](err); ok {
		return activities.Fail(bad.code, "%q cannot be read: %s", name, bad.text)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return activities.Fail(problem.KnowledgeRefInvalid, "there is no file %q; search for one with %s", name, Search)
	}
	return activities.Fail(problem.KnowledgeRefInvalid, "%q cannot be read: %v", name, reason(err))
}

// load reads a file of a base and cuts it into sections.
func (l *Library) load(base, name string) ([]section, error) {
	form := format(name)
	if form == "" {
		return nil, &badFile{problem.KnowledgeFormatUnsupported, "only md, txt, json, csv and html files are read"}
	}
	root, err := l.open(base)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := readFile(root, name)
	if err != nil {
		return nil, err
	}
	return split(form, text), nil
}

// readFile reads a text in a folder.
func readFile(root *os.Root, name string) (string, error) {
	f, info, err := regularfile.OpenIn(root, name)
	switch {
	case errors.Is(err, regularfile.ErrNotRegular):
		return "", &badFile{problem.KnowledgeRefInvalid, "it is not a file"}
	case err != nil:
		return "", err
	}
	defer f.Close()
	if info.Size() > MaxFileBytes {
		return "", tooLarge
	}
	read, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err == nil && len(read) > MaxFileBytes {
		err = tooLarge
	}
	if err != nil {
		return "", err
	}
	return decode(read)
}

var (
	tooLarge = &badFile{problem.KnowledgeFormatUnsupported, "it is larger than 4 MiB"}
	notText  = &badFile{problem.KnowledgeFormatUnsupported, "it is not text in UTF-8"}
)

// decode reads UTF-8, and UTF-16 with a byte order mark.
func decode(raw []byte) (string, error) {
	text := string(raw)
	switch {
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		if len(raw)%2 != 0 {
			return "", notText
		}
		units := make([]uint16, 0, len(raw)/2)
		for i := 2; i < len(raw); i += 2 {
			low, high := raw[i], raw[i+1]
			if raw[0] == 0xfe {
				low, high = high, low
			}
			units = append(units, uint16(low)|uint16(high)<<8)
		}
		text = string(utf16.Decode(units))
	default:
		text = strings.TrimPrefix(text, "\ufeff")
	}
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return "", notText
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), nil
}
