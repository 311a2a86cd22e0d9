package jsonschema

import (
	"strconv"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// keywords takes the place of keywords of the library that would compare one value with all others, convert every number for it, or write
// a text and keep an error for each element of a long list.
type keywords struct {
	required        []string
	enum, constant  []any
	constantBytes   int
	inEnum, isConst *values
	unique          bool
	// items applies from the index prefix on; itemsKeyword is where it stands in the schema.
	items        *lib.Schema
	itemsKeyword string
	prefix       int
	contains     *lib.Schema
	containsEval bool
	least, most  int // of contains; -1 if not asked
}

// installKeywords moves the keywords of a schema into an extension.
func installKeywords(s *lib.Schema) {
	k := &keywords{
		required: s.Required, unique: s.UniqueItems, items: s.Items2020, itemsKeyword: "items", prefix: len(s.PrefixItems),
		contains: s.Contains, containsEval: s.ContainsEval, least: s.MinContains, most: s.MaxContains,
	}
	switch items := s.Items.(type) { // of drafts before 2020-12
	case *lib.Schema:
		k.items, s.Items = items, nil
	case []*lib.Schema:
		if rest, ok := s.AdditionalItems.(*lib.Schema); ok {
			k.items, k.itemsKeyword, k.prefix, s.AdditionalItems = rest, "additionalItems", len(items), nil
		}
	}
	if len(s.Enum) > 0 {
		k.enum = plain(s.Enum).([]any)
		k.inEnum = newValues(k.enum)
	}
	if len(s.Constant) > 0 {
		k.constant = plain(s.Constant).([]any)
		k.isConst = newValues(k.constant)
		k.constantBytes = jsonvalue.Size(k.constant[0], 0)
	}
	if len(k.required) == 0 && k.inEnum == nil && k.isConst == nil && !k.unique && k.items == nil && k.contains == nil {
		return
	}
	s.Required, s.Enum, s.Constant, s.UniqueItems, s.Items2020, s.Contains = nil, nil, nil, false, nil, nil
	extend(s, keywordsName, k)
}

// keywordsOf returns the keywords of a schema, also of one that is the library's own and was left as it is.
func keywordsOf(s *lib.Schema) *keywords {
	if k, ok := s.Extensions[keywordsName].(*keywords); ok {
		return k
	}
	enum, _ := plain(s.Enum).([]any)
	constant, _ := plain(s.Constant).([]any)
	return &keywords{required: s.Required, enum: enum, constant: constant}
}

// Validate reports failed keywords as the library does; flatten describes them.
func (k *keywords) Validate(ctx lib.ValidationContext, v any) error {
	var c collected
	fail := func(keyword string) { c.add(ctx.Error(keyword, "failed")) }
	if k.isConst != nil {
		if _, ok := k.isConst.find(v); !ok {
			fail("const")
		}
	}
	if k.inEnum != nil {
		if _, ok := k.inEnum.find(v); !ok {
			fail("enum")
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range k.required {
			if _, ok := v[name]; !ok {
				fail("required")
				break
			}
		}
	case []any:
		if k.unique {
			if _, _, found := equalItems(v); found {
				fail("uniqueItems")
			}
		}
		if k.items != nil {
			k.checkItems(ctx, v, &c)
		}
		if k.contains != nil {
			k.count(ctx, v, fail)
		}
	}
	return c.err(ctx)
}

func (k *keywords) checkItems(ctx lib.ValidationContext, list []any, c *collected) {
	for i := k.prefix; i < len(list); i++ {
		ctx.EvaluatedItem(i)
		if !c.full() {
			c.add(ctx.Validate(k.items, k.itemsKeyword, list[i], strconv.Itoa(i)))
		}
	}
}

func (k *keywords) count(ctx lib.ValidationContext, list []any, fail func(string)) {
	matched := 0
	for i, e := range list {
		if ctx.Validate(k.contains, "contains", e, strconv.Itoa(i)) == nil {
			matched++
			if k.containsEval {
				ctx.EvaluatedItem(i)
			}
		}
	}
	if k.least != -1 && matched < k.least {
		fail("minContains")
	}
	if k.most != -1 && matched > k.most {
		fail("maxContains")
	}
}

// maxCollected bounds the memory of the errors of one array or object. Beyond it, the rest is not checked: the value
// is invalid anyway.
const maxCollected = 256 << 10

// errorBytes is the size of an error of the library without its texts.
const errorBytes = 300

// collected is a list of errors and its size in memory.
type collected struct {
	errs  []error
	bytes int
}

// add adds an error of the library, or nothing for nil.
func (c *collected) add(err error) {
	if ve, ok := err.(*lib.ValidationError); ok && ve != nil {
		c.errs = append(c.errs, ve)
		c.bytes += weigh(ve)
	}
}

func (c *collected) full() bool { return c.bytes > maxCollected }

func (c *collected) err(ctx lib.ValidationContext) error {
	switch len(c.errs) {
	case 0:
		return nil
	case 1:
		return c.errs[0]
	}
	return lib.ValidationError{}.Group(ctx.Error("", ""), c.errs...)
}

func weigh(e *lib.ValidationError) int {
	n := errorBytes + len(e.KeywordLocation) + len(e.AbsoluteKeywordLocation) + len(e.InstanceLocation) + len(e.Message)
	for _, c := range e.Causes {
		n += weigh(c)
	}
	return n
}

// isForeign reports whether a schema is one of the library's own, the meta-schemas, which all users of the library share.
func isForeign(s *lib.Schema) bool {
	return strings.HasPrefix(s.Location, "https://json-schema.org/") || strings.HasPrefix(s.Location, "http://json-schema.org/")
}

// values is a set of JSON values. Looking one up takes as long as the value is large, however many the set has.
type values struct {
	scalars map[any]int
	// texts holds lists and objects as canonical JSON.
	texts map[string]int
}

func newValues(list []any) *values {
	s := &values{}
	for i, v := range list {
		s.add(v, i)
	}
	return s
}

// add adds the value at an index of a list, unless the set has an equal one, whose index it returns.
func (s *values) add(v any, index int) (first int, found bool) {
	if first, found = s.find(v); found {
		return first, true
	}
	if isScalar(v) {
		if s.scalars == nil {
			s.scalars = map[any]int{}
		}
		s.scalars[v] = index
		return index, false
	}
	if s.texts == nil {
		s.texts = map[string]int{}
	}
	s.texts[string(jsonvalue.Canonical(v))] = index
	return index, false
}

func (s *values) find(v any) (index int, found bool) {
	if isScalar(v) {
		index, found = s.scalars[v]
	} else if len(s.texts) > 0 {
		index, found = s.texts[string(jsonvalue.Canonical(v))]
	}
	return index, found
}

func isScalar(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string:
		return true
	}
	return false
}

// equalItems returns the first element that is equal to an earlier one, and that one.
func equalItems(list []any) (i, j int, found bool) {
	if len(list) < 2 {
		return 0, 0, false
	}
	var earlier values
	for j, e := range list {
		if i, found := earlier.add(e, j); found {
			return i, j, true
		}
	}
	return 0, 0, false
}
