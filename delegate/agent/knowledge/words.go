package knowledge

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// stopWords are too common to identify a text.
var stopWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(`a about after all also am an and any are as at be because been before being between both but by can could did do does
		doing down during each for from had has have having he her here hers him his how i if in into is it its just me more most my no nor not of off on
		once only or other our out over own same she should so some such than that the their them then there these they this those through to too under
		until up very was we were what when where which while who whom why will with would you your`) {
		words[word] = true
	}
	return words
})

// maxWord bounds a word, in bytes; the rest of a longer one does not count.
const maxWord = 64

// seed is that of the words' hashes, which live as long as the process.
var seed = maphash.MakeSeed()

// wordsOf returns the words of a text, as sorted hashes: runs of letters and digits in small letters, without the "s" of an English plural.
// Each character of Chinese and Japanese is a word. Stop words are left out.
func wordsOf(text string) []uint64 {
	var words []uint64
	var word []byte
	end := func() {
		if len(word) == 0 {
			return
		}
		w := string(word)
		word = word[:0]
		if stopWords()[w] {
			return
		}
		if n := len(w); n > 3 && w[n-1] == 's' && w[n-2] != 's' {
			w = w[:n-1]
		}
		words = append(words, maphash.String(seed, w))
	}
	for _, r := range text {
		switch {
		case r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			words = append(words, maphash.String(seed, string(r)))
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			if len(word) < maxWord {
				word = append(word, string(unicode.ToLower(r))...)
			}
		default:
			end()
		}
	}
	end()
	slices.Sort(words)
	return slices.Compact(words)
}
