package jsonvalue

import (
	"cmp"
	"slices"
	"strings"
)

// The protocol's order of member names is JavaScript's for names sorted by UTF-16 code units: array indexes come
// first, in numeric order (spec: execution, 0.2 and 9.4).

// maxIndex is the largest array index of JavaScript, 2^32 - 2.
const maxIndex = "4294967294"

// isIndex reports whether name is a canonical array index: decimal, no sign, no leading zero, at most maxIndex.
func isIndex(name string) bool {
	if name == "" || len(name) > len(maxIndex) || name[0] == '0' && len(name) > 1 {
		return false
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return false
		}
	}
	return len(name) < len(maxIndex) || name <= maxIndex
}

// compareNames orders member names as the protocol does.
func compareNames(a, b string) int {
	switch aIndex, bIndex := isIndex(a), isIndex(b); {
	case aIndex && bIndex:
		// Without leading zeros the shorter number is the smaller one.
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	case aIndex:
		return -1
	case bIndex:
		return 1
	}
	return compareUTF16(a, b)
}

// compareUTF16 orders by UTF-16 code units. That is the order of the UTF-8 bytes, except that characters beyond
// U+FFFF (lead bytes F0 and up, surrogates D800–DFFF in UTF-16) come before those from U+E000 (lead bytes EE and EF).
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}

// plainName reports whether byte order is the protocol's order for name among others of its kind: it cannot be an
// index and has no character beyond U+FFFF. It may say no for a name that would do.
func plainName(name string) bool {
	if name == "" {
		return true
	}
	if name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if name[i] >= 0xF0 {
			return false
		}
	}
	return true
}

// Keys returns an object's member names in the protocol's order: canonical array indexes first, numerically, then the
// others by UTF-16 code units.
func Keys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	plain := true
	for name := range m {
		names = append(names, name)
		plain = plain && plainName(name)
	}
	if plain {
		slices.Sort(names)
	} else {
		slices.SortFunc(names, compareNames)
	}
	return names
}
