package knowledge

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// file is the index entry of a file.
type file struct {
	size     int64
	modified time.Time
	sections []indexed
	// left is why the file is not in the index.
	left string
}

// indexed is the index entry of a section. A search reads the texts that it shows again.
type indexed struct {
	slug, title string
	// words are those of the section with its title and the name of its file; head are those of the latter two.
	words, head []uint64
}

// maxLeft bounds how many files a search names that it has left out.
const maxLeft = 5

// search returns the sections with most words of a query.
func (l *Library) search(ctx context.Context, query string, bases []string) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := 0
	var why []any
	note := func(ref, reason string) {
		if left++; left <= maxLeft {
			why = append(why, map[string]any{"ref": ref, "reason": reason})
		}
	}
	var found []match
	wanted := wordsOf(query)
	for _, base := range bases {
		names, err := l.renew(ctx, base, note)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, l.files[name].matches(base, name, wanted)...)
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(b.score-a.score, a.size-b.size, cmp.Compare(a.name, b.name), a.at-b.at)
	})
	found = slices.CompactFunc(found, func(a, b match) bool { return a.name == b.name && a.at == b.at }) // of bases within each other
	results := []any{}
	texts := map[string][]section{}
	for _, m := range found[:min(len(found), l.config.MaxSearchResults)] {
		if _, read := texts[m.name]; !read {
			texts[m.name], _ = l.load(m.base, strings.TrimPrefix(m.name, m.base+"/")) // nil if it has just been changed
		}
		results = append(results, map[string]any{
			"ref": m.name + "#" + m.of.slug, "title": m.of.title, "score": float64(m.score), "excerpt": excerpt(texts[m.name], m.at, wanted),
		})
	}
	out := map[string]any{"results": results, "matches": float64(len(found))}
	if left > 0 {
		out["left_out"], out["left_out_count"] = why, float64(left)
	}
	return out, nil
}

type match struct {
	base, name  string
	of          *indexed
	score, size int
	at          int
}

// matches are the sections that have at least one of the words. A word counts once, and once more in the title or the name of the file.
func (f *file) matches(base, name string, wanted []uint64) (found []match) {
	for i := range f.sections {
		s := &f.sections[i]
		score := 0
		for _, w := range wanted {
			if _, ok := slices.BinarySearch(s.words, w); ok {
				score++
				if _, ok := slices.BinarySearch(s.head, w); ok {
					score++
				}
			}
		}
		if score > 0 {
			found = append(found, match{base: base, name: name, of: s, score: score, size: len(s.words), at: i})
		}
	}
	return found
}

// renew reads the files of a base whose size or time has changed, and returns all that are indexed.
func (l *Library) renew(ctx context.Context, base string, note func(ref, reason string)) (names []string, err error) {
	root, err := l.open(base)
	if err != nil {
		return nil, activities.Fail(problem.KnowledgeRefInvalid, "the knowledge base %q cannot be read: %v", base, reason(err))
	}
	defer root.Close()
	var total int64
	seen := map[string]bool{}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == ".":
			return activities.Fail(problem.KnowledgeRefInvalid, "the knowledge base %q cannot be read: %v", base, reason(err))
		case err != nil:
			note(base+"/"+name, reason(err).Error())
			return nil
		case name == ".":
			return nil
		case !plainPath(name) && entry.IsDir():
			return fs.SkipDir
		case !plainPath(name) || format(name) == "" || entry.IsDir():
			return nil
		}
		info, err := root.Stat(name) // of what a symbolic link names, which is in the base
		ref := base + "/" + name
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if len(seen) >= MaxFiles || total+info.Size() > MaxBytes && info.Size() <= MaxFileBytes {
			note(ref, "there is too much to search")
			return nil
		}
		if info.Size() <= MaxFileBytes {
			total += info.Size()
		}
		seen[ref] = true
		f := l.files[ref]
		if f == nil || f.size != info.Size() || !f.modified.Equal(info.ModTime()) {
			f = index(root, name, info)
			l.files[ref] = f
		}
		if f.left != "" {
			note(ref, f.left)
			return nil
		}
		names = append(names, ref)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for ref := range l.files {
		if strings.HasPrefix(ref, base+"/") && !seen[ref] {
			delete(l.files, ref)
		}
	}
	return names, nil
}

// index reads a file for the index.
func index(root *os.Root, name string, info fs.FileInfo) *file {
	f := &file{size: info.Size(), modified: info.ModTime()}
	text, err := readFile(root, name)
	if err != nil {
		f.left = reason(err).Error()
		return f
	}
	of := strings.TrimSuffix(path.Base(name), path.Ext(name))
	for _, s := range split(format(name), text) {
		head := of + " " + s.title
		f.sections = append(f.sections, indexed{slug: s.slug, title: s.title, head: wordsOf(head), words: wordsOf(head + "\n" + s.lead + s.text)})
	}
	return f
}

// maxExcerpt is how much a search shows of a section.
const maxExcerpt = 300

// excerpt is the beginning of a section, or the text around the first line with one of the words.
func excerpt(sections []section, of int, wanted []uint64) string {
	if of >= len(sections) {
		return ""
	}
	text := sections[of].text
	best, at, from := 0, 0, 0
	for line := range strings.Lines(text) {
		if len(line) > 20*maxExcerpt {
			line = line[:20*maxExcerpt]
		}
		n := 0
		for _, w := range wordsOf(line) {
			if slices.Contains(wanted, w) {
				n++
			}
		}
		if n > best {
			best, from = n, at
		}
		if at += len(line); at > 64<<10 {
			break
		}
	}
	return clean(text[boundary(text, from):boundary(text, from+4*maxExcerpt)], maxExcerpt)
}
