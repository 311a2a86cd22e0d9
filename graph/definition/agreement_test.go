package definition_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// definitionsBelow returns the definitions in the JSON and YAML files below a directory, valid or not, those inside vectors too. A
// directory that does not exist has none.
func definitionsBelow(t *testing.T, root string) []any {
	t.Helper()
	var found []any
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				look(e)
			}
		case map[string]any:
			if v["nodes"] != nil && v["edges"] != nil {
				found = append(found, v)
				return
			}
			for _, key := range jsonvalue.Keys(v) {
				look(v[key])
			}
		}
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		parse := definition.Parse
		switch filepath.Ext(path) {
		case ".yaml":
			parse = definition.ParseYAML
		case ".json":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := parse(text); err == nil {
			look(d.Value())
		}
		return nil
	})
	return found
}

// TestSchemaAgreesWithCompile shows that the published schema accepts a document exactly if the structural check of Compile does, over
// every definition of the repository and of the protocol, and over random changes of each. What Compile rejects beyond the structure
// (the graph, programs, schemas in schemas) is more than a schema can say: the test reports how often.
func TestSchemaAgreesWithCompile(t *testing.T) {
	t.Parallel()
	var documents []any
	for _, root := range []string{"../../examples", "../../conformance", "../../internal", "../lint/testdata", "testdata", "../../../shared/awp-v1"} {
		documents = append(documents, definitionsBelow(t, filepath.FromSlash(root))...)
	}
	if len(documents) < 80 {
		t.Fatalf("only %d definitions were found", len(documents))
	}
	rnd := rand.New(rand.NewPCG(20, 27))
	accepted, rejected, stricter := 0, 0, 0
	compare := func(doc any) {
		d, p, findings := compileValue(t, doc)
		structure, _ := structural(findings)
		bySchema := publishedSchema().Validate(d.Value())
		switch {
		case (len(bySchema) > 0) != (len(structure) > 0):
			t.Fatalf("the schema finds %v, the structural check\n%s\nin %s", bySchema, list(findings), d.Canonical())
		case len(bySchema) > 0:
			rejected++
		default:
			accepted++
			if p == nil {
				stricter++
			}
		}
	}
	for _, doc := range documents {
		compare(doc)
		for range soak.Size(1, 0, 10) {
			compare(mutate(rnd, jsonvalue.Clone(doc)))
		}
	}
	t.Logf("%d documents: %d accepted by both, of which Compile rejects %d for their meaning; %d rejected by both",
		len(documents), accepted, stricter, rejected)
	if accepted == 0 || rejected == 0 {
		t.Error("the documents are lopsided")
	}
}
