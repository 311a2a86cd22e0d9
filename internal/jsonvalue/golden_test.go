package jsonvalue_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// leniency says what Decode makes of a text that Parse refuses, where it is not what the protocol hashes.
type leniency string

const (
	// kept: the protocol's hash leaves a member named "__proto__" out; Decode loses no data.
	kept leniency = "kept"
	// replaced: the protocol hashes a lone surrogate as its escape; a Go string holds U+FFFD in its place.
	replaced leniency = "replaced"
)

// golden are texts with the canonical text and hash that other engines compute for them.
var golden = []struct {
	in      string
	out     string // "" is in
	sha     string
	refused string // the kind of problem that Parse reports; Decode accepts the text nevertheless
	lenient leniency
}{
	// Spec: definition, 14.4.2.
	{in: `{}`, sha: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
	{in: `{"b":1,"a":{"d":1,"c":2}}`, out: `{"a":{"c":2,"d":1},"b":1}`, sha: "b6cb1b7b79793877cd08cdf90d45801fe9e7b1deb2e0738b2b72024e339a277c"},
	{in: `{"a":[3,1,2]}`, sha: "d934227f5a9f29b31bd6a8ceed3213dd498a07ce32bdfa9ae2488de0c0ab68f1"},
	{in: `{"a":1.0}`, out: `{"a":1}`, sha: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"},
	{in: `{"a":1}`, sha: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"},
	{in: `{"a":1e0}`, out: `{"a":1}`, sha: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"},
	{in: `{"a":1e2}`, out: `{"a":100}`, sha: "f0015e5829a1311e9b61ef10cb18c6e783cc512e3989d3679f7622425a244a72"},
	{in: `{"a":1E400}`, out: `{"a":null}`, sha: "d091f9c83c091f79652fe8786375b3fe4ce0861a56f5bfbafedbe431877ff0e8", refused: "number"},
	{in: `{"a":-1E400}`, out: `{"a":null}`, sha: "d091f9c83c091f79652fe8786375b3fe4ce0861a56f5bfbafedbe431877ff0e8", refused: "number"},
	{in: `{"a":1e-400}`, out: `{"a":0}`, sha: "45b619e97b5d9b029af4522e9ffb02fa99ff2bf226c82ee22a7cc10269a557e8"},
	{in: `{"a":-0}`, out: `{"a":0}`, sha: "45b619e97b5d9b029af4522e9ffb02fa99ff2bf226c82ee22a7cc10269a557e8"},
	{in: `{"a":-0.0}`, out: `{"a":0}`, sha: "45b619e97b5d9b029af4522e9ffb02fa99ff2bf226c82ee22a7cc10269a557e8"},
	{in: `{"a":9007199254740992}`, sha: "65c07d758377f303542fde97a8fe78f29a66c1e062b8f80fed3106a6d106d88b"},
	{in: `{"a":9007199254740993}`, out: `{"a":9007199254740992}`, sha: "65c07d758377f303542fde97a8fe78f29a66c1e062b8f80fed3106a6d106d88b"},
	{in: `{"a":12345678901234567890}`, out: `{"a":12345678901234567000}`, sha: "7c2197f669f17818320e958530bba720b4420c646f5fbacce36c9532d8bef852"},
	{in: `{"a":100000000000000000000}`, sha: "c125828e7797f96ed628b16510a00360bfb7ea19ea08f003b43c9668f195f087"},
	{in: `{"a":1000000000000000000000}`, out: `{"a":1e+21}`, sha: "a18fbc0bcef4f91fedea4a6ff70089101462846a93a65795324a14b10cb5c4d9"},
	{in: `{"a":1e21}`, out: `{"a":1e+21}`, sha: "a18fbc0bcef4f91fedea4a6ff70089101462846a93a65795324a14b10cb5c4d9"},
	{in: `{"a":0.000001}`, sha: "73316665f7916cb06cb29b316b8987b6cc89a7fea4a4fff0ce661eb6ad1eeffb"},
	{in: `{"a":0.0000001}`, out: `{"a":1e-7}`, sha: "b248271d18d09a840564eafaaeb935f11a4d44d6d90ac5b3baa9714420782816"},
	{in: `{"a":0.1000000000000000055}`, out: `{"a":0.1}`, sha: "9e3d5635fc1c09ff15c19f1089a0bfe03fbd8329cca722f9a2227060ac77dcaa"},
	{in: `{"a":1.10}`, out: `{"a":1.1}`, sha: "fb313133b088b2b71890df2e07b7db211b1024d5c41d4894c292bb0eb8627b1c"},
	{in: `{"a":5e-324}`, sha: "7496f25994a875ed4269000497c1e2cccfe55d0a6c2078b65b32eef2700d750a"},
	{in: `{"a":1.7976931348623157e308}`, out: `{"a":1.7976931348623157e+308}`, sha: "bf1da90ca7a9fda2ad93c0377d3355e67dfd54ac28852da8b2ba2a6727f1780c"},
	{in: `{"a":123456789.123456789}`, out: `{"a":123456789.12345679}`, sha: "175e78a1b84097d4033fbd3fcfedd4fd255e5ca259b5177a279eb6f961092c0e"},
	{in: `{"10":1,"9":2,"a":3,"B":4,"01":5,"-1":6,"1.5":7,"":8}`, out: `{"9":2,"10":1,"":8,"-1":6,"01":5,"1.5":7,"B":4,"a":3}`, sha: "d260e47d8ebe05f4d256c944166c89d52053837eb22444455091157b633c3857"},
	{in: `{"4294967295":1,"4294967294":2,"0":3,"z":4}`, out: `{"0":3,"4294967294":2,"4294967295":1,"z":4}`, sha: "30608492eb8de61718607c5e1d8d94d743036be612ed67e39871e651929c4f00"},
	{in: `{"\uFFFF":1,"\uD83D\uDE00":2,"\u00e9":3,"z":4}`, out: "{\"z\":4,\"é\":3,\"😀\":2,\"\uFFFF\":1}", sha: "67a486f6e154ebe82a255dc6cf51933c8b7d561db0ab633756fcb599f35f7f9b"},
	{in: `{"b":1,"B":2,"a":3,"A":4,"_":5}`, out: `{"A":4,"B":2,"_":5,"a":3,"b":1}`, sha: "9a4dcba5aa3e7a8e92715298366fafc7f4ea8e3e08b304200817106dbc066299"},
	{in: `{"a":1,"__proto__":{"x":1}}`, out: `{"a":1}`, sha: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862", refused: "proto", lenient: kept},
	{in: `{"a":1,"__proto__":5}`, out: `{"a":1}`, sha: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862", refused: "proto", lenient: kept},
	{in: `{"constructor":1,"toString":2}`, sha: "8565d8107bcf0914366b4d6733d35f010597f8033a7c3ab592d6ca07664c4bc7"},
	{in: `{"a":1,"b":2,"a":3}`, out: `{"a":3,"b":2}`, sha: "493df656a590967c84d643bdd55ee956fb53262c51b154115083c9bcc4c992e3", refused: "duplicate"},
	{in: `{"a":"<&>"}`, sha: "8658fe1f872cd0d087e206ab8fd59cbc9873d8a4d5701620f4d3d17b0f2fb388"},
	{in: `{"a":"\u2028\u2029"}`, out: "{\"a\":\"\u2028\u2029\"}", sha: "fe5bbd6d1cc47479e51b65146c0c65b914b1d0648e42f67610952183872d32d8"},
	{in: `{"a":"\b\f\n\r\t\u0000\u001f\u007f"}`, out: "{\"a\":\"\\b\\f\\n\\r\\t\\u0000\\u001f\u007F\"}", sha: "f7a081fe488f0d4af9877205b6e7e68db108d8e1b91f55465b3490e0a293bce1"},
	{in: `{"a":"\/"}`, out: `{"a":"/"}`, sha: "b9293316ef631c94fa2e4c37f6a2d58d13b29f1b43876c71a71233a91aee5525"},
	{in: `{"a":"é😀"}`, sha: "b0699189cec62a436823aaea2adabe24b05b6a8a47f99ff48a50e549ae8b2043"},
	{in: `{"a":"\u00e9\ud83d\ude00"}`, out: `{"a":"é😀"}`, sha: "b0699189cec62a436823aaea2adabe24b05b6a8a47f99ff48a50e549ae8b2043"},
	{in: `{"a":"\ud800"}`, sha: "89f8ca88ea20e6cd48ed0ab6b731b66377cab0c8fb9a7187ea96ac6813ed24e4", refused: "surrogate", lenient: replaced},
	{in: `{"a":"\udc00x"}`, sha: "3a7fc683604fbc46682365718ece6efce5dc6a2e168f302bd12306cd2e3998b3", refused: "surrogate", lenient: replaced},
	{in: `{"\u00e9":1,"e\u0301":2}`, out: `{"é":2,"é":1}`, sha: "a7962fb10dc1255be368ece9c22b2256605921dc6d0a8c9409d3ee406bcb86e5"},
	{in: "{ \"a\" :\n 1 }", out: `{"a":1}`, sha: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"},
	{in: `{"a":null,"b":true,"c":false}`, sha: "17073ac6186d8c60c0c0da712ce30cdb52ed5a9155f616983da39a9785dce715"},
	{in: `{"a":{},"b":[],"c":""}`, sha: "e052004170cc85d084722ffe760c499548014bfdbdf5275548b688255770dfc2"},
	{in: `{"a":[{"b":1,"a":2},[{"d":1,"c":2}]]}`, out: `{"a":[{"a":2,"b":1},[{"c":2,"d":1}]]}`, sha: "57f867c75f44cd16beb70fe63b9dae47ab112deabdce16eee48f935a51df347a"},
	{in: `[{"b":1,"a":2}]`, out: `[{"a":2,"b":1}]`, sha: "82c9656ed6aa58d0ca5d00081451bfd33f9edd2a45f27c647781c8783759541d"},
	// Spec: cli-and-config, 7; execution, 9.4.
	{in: `{"b":1,"10":2,"9":3,"A":0,"01":5,"-1":6,"1.5":7}`, out: `{"9":3,"10":2,"-1":6,"01":5,"1.5":7,"A":0,"b":1}`, sha: "72cd6398cfe58ebcc430e72db542f875a3c880c3c99c3b53d26b03bd8632a28e"},
	{in: `{"n":1.0,"m":-0,"e":1e21,"f":1e-7,"g":123456789012345678901,"h":0.1,"i":1e400}`, out: `{"e":1e+21,"f":1e-7,"g":123456789012345680000,"h":0.1,"i":null,"m":0,"n":1}`, sha: "0173526a26b067fe53f2183fdb44c60ca976ef76cce39087048a3930f4e14e9e", refused: "number"},
	{in: `{"\u00e9":1,"z":2,"\ud83d\ude00":3,"\uffff":4}`, out: "{\"z\":2,\"é\":1,\"😀\":3,\"\uFFFF\":4}", sha: "89df1d1d585c9b41d2a43a7bf189f694ac52cb9fe3fc2df5b5a737ffc2574de6"},
	{in: `{"s":"a/b\u2028\u007f\u0001\n\ud800 é 😀<>&"}`, out: "{\"s\":\"a/b\u2028\u007F\\u0001\\n\\ud800 é 😀<>&\"}", sha: "6910f0a4cfc9e48c3d1dc1c8822236594090a052586c57ddde715456d5138207", refused: "surrogate", lenient: replaced},
	{in: `{"a":[{"d":1,"c":2}],"4294967295":1,"4294967294":2}`, out: `{"4294967294":2,"4294967295":1,"a":[{"c":2,"d":1}]}`, sha: "f5576303b0bc7a2b63dbcba4d7915783cd233d4e66a5d070c61b321f2c9dbad7"},
	{in: `{"a":1,"a":2}`, out: `{"a":2}`, sha: "7e8059f495589fcd981232cc11d00b00da3802c01d688fa1cf1f6bed6e5bb33c", refused: "duplicate"},
	{in: `{"__proto__":{"a":1},"a":2}`, out: `{"a":2}`, sha: "7e8059f495589fcd981232cc11d00b00da3802c01d688fa1cf1f6bed6e5bb33c", refused: "proto", lenient: kept},
	{in: `{"\u00e9":"\u2028"}`, out: "{\"é\":\"\u2028\"}", sha: "29e03b91bdaff88500e738d909527696ea21ba94b616d1d3207fc17a67bc0e6b"},
}

func TestGoldenCanonicalText(t *testing.T) {
	t.Parallel()
	for _, row := range golden {
		t.Run(row.in, func(t *testing.T) {
			t.Parallel()
			want := row.out
			if want == "" {
				want = row.in
			}
			if sum := sha256.Sum256([]byte(want)); hex.EncodeToString(sum[:]) != row.sha {
				t.Fatalf("the row contradicts itself: %s", want)
			}
			decoded, err := jsonvalue.Decode([]byte(row.in))
			if err != nil {
				t.Fatalf("Decode: %v", err)
			}
			n, problems := jsonvalue.Parse([]byte(row.in), 0, 0, "precision")
			if n == nil {
				t.Fatalf("Parse gave no node: %v", problems)
			}
			if !jsonvalue.Equal(n.Value(), decoded) {
				t.Errorf("Parse reads %v, Decode %v", n.Value(), decoded)
			}
			if row.refused == "" && len(problems) > 0 {
				t.Errorf("Parse refuses: %v", problems)
			}
			if row.refused != "" && (len(problems) != 1 || problems[0].Kind != row.refused) {
				t.Errorf("Parse gives %v, want one problem of kind %q", problems, row.refused)
			}
			got := string(jsonvalue.Canonical(decoded))
			if row.lenient != "" {
				if got == want {
					t.Errorf("the row says %q, but Decode agrees with the protocol", row.lenient)
				}
				return
			}
			if got != want {
				t.Errorf("canonical text\n%s, want\n%s", got, want)
			}
			if hash := jsonvalue.Hash(decoded); hash != row.sha {
				t.Errorf("hash %s, want %s", hash, row.sha)
			}
		})
	}
}

// Whole definitions (spec: definition, 14.4.2).
const (
	definitionOneOrder     = `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object","properties":{"10":{"reducer":"append"},"9":{},"a":{}}},"nodes":[{"id":"s","type":"start"},{"id":"t","type":"tool_call","config":{"server":"a","tool":"b","arguments":{"n":1.0,"m":-0,"e":1E21,"f":1e-7,"g":12345678901234567890,"x":"<&>\u2028","é":"\u00e9"}},"retry":{"max_attempts":2.0,"backoff_coefficient":1.50}},{"id":"e","type":"end","config":{"output_mapping":".a > 1"}}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"t"},{"source":"t","target":"e"}],"checkpointing":{"n":2.0,"strategy":"every_n_nodes"}}`
	definitionAnotherOrder = `{"edges":[{"target":"s","source":"__start__"},{"target":"t","source":"s"},{"target":"e","source":"t"}],"checkpointing":{"strategy":"every_n_nodes","n":2},"nodes":[{"type":"start","id":"s"},{"config":{"arguments":{"\u00e9":"é","x":"<&>\u2028","g":12345678901234567000,"f":0.0000001,"e":1000000000000000000000,"m":0,"n":1},"tool":"b","server":"a"},"retry":{"backoff_coefficient":1.5,"max_attempts":2},"type":"tool_call","id":"t"},{"config":{"output_mapping":".a > 1"},"type":"end","id":"e"}],"state_schema":{"properties":{"a":{},"9":{},"10":{"reducer":"append"}},"type":"object"},"document":{"version":"1","name":"n","schema":"s"}}`
	definitionHiddenMember = `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start","metadata":{"\ud83d\ude00":1,"\uffff":2,"__proto__":{"hidden":true}}},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"e"}]}`
)

func TestGoldenDefinitions(t *testing.T) {
	t.Parallel()
	const hash = "77cb2651d4f5c36e3bbf270d638b908cc3650f27985c4abf4d4ac0faa56af89f"
	for _, text := range []string{definitionOneOrder, definitionAnotherOrder} {
		n, problems := jsonvalue.Parse([]byte(text), 0, 0, "precision")
		if len(problems) > 0 {
			t.Fatalf("Parse: %v", problems)
		}
		if got := jsonvalue.Hash(n.Value()); got != hash {
			t.Errorf("hash %s, want %s", got, hash)
		}
	}
}

// TestW33_DocumentsThatHashAlikeAreRefused: where the protocol's hash is blind, two documents could share it.
func TestW33_DocumentsThatHashAlikeAreRefused(t *testing.T) {
	t.Parallel()
	n, problems := jsonvalue.Parse([]byte(definitionHiddenMember), 0, 0)
	if len(problems) != 1 || problems[0].Kind != "proto" || problems[0].Pointer != "/nodes/0/metadata/__proto__" {
		t.Fatalf("Parse: %v, want the member __proto__ refused", problems)
	}
	definition := n.Value()
	delete(definition.(map[string]any)["nodes"].([]any)[0].(map[string]any)["metadata"].(map[string]any), "__proto__")
	const hash = "8d8084a3ca68bcde7b085cb329778eade07372291e2e4d94db6ebc2c1c452c2e"
	if got := jsonvalue.Hash(definition); got != hash {
		t.Errorf("hash without the member %s, want %s", got, hash)
	}
	for kind, text := range map[string]string{
		"proto":     `{"a":1,"__proto__":2}`,
		"duplicate": `{"a":2,"a":1}`,
		"surrogate": `{"a":"\ud800"}`,
		"number":    `{"a":1e400}`,
	} {
		if _, problems := jsonvalue.Parse([]byte(text), 0, 0); len(problems) != 1 || problems[0].Kind != kind {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

// exampleHashes are the definition hashes of the protocol's example documents (spec: definition, 14.4.2).
var exampleHashes = map[string]string{
	"agentic-task-intake-prompt-improver.workflow.json": "fa74f6b56414ef4241deacf1d5ac6f421afb2117f7b53bc68a54e7519234c3f9",
	"conformance-agent-delegate-linear.workflow.json":   "6d0698a42b4d377a2670666a16b7a801e3574565fcaaddfcfdb3f5f2edeb441c",
	"conformance-host-activity-linear.workflow.json":    "5f97ff9cd98775195180a7e4615ab721ba72813fa14f5b025e5ed149cb2bb873",
	"conformance-host-activity-parallel.workflow.json":  "afda241e82c4b81701db9f9596157e6b841873a15c8c14ada90d92862ae46a59",
	"conformance-retry-step.workflow.json":              "3bfb507655d678b672d87711c085c7f304f66ea512bd667664cbbe88b1354ba2",
	"conformance-signal-wait.workflow.json":             "14e5d25c5e66ca459d433a23849d351105feeeb80765f4ebfea3e2717d52583f",
	"conformance-step-handler.workflow.json":            "0b92f99314d2daec450118be4bf6198acf8fc55c2812f2488f42615959c8a67c",
	"conformance-subworkflow-parent.workflow.json":      "8c67993b22dafc7a86c2b7305f711adc261bd8590be96619b79560859a16cde6",
	"lighthouse-customer-routing.workflow.json":         "691aadcfa8524b9fd4258c37200024bbedd8bca362a6d443be7ce18d6b9ee042",
	"paperclip-read-compact.workflow.json":              "a008ad656d6283fec6222d336e167b92354b173b7f5820747429271a2fd3ca6d",
	"paperclip-read-parallel.workflow.json":             "cf0b3137503bb4638c0f0b2a60a20d5136f7da3775653fd107b6bf4a4a248948",
	"paperclip-read-snapshot.workflow.json":             "24344aea68b60d5f622403329521b2c656eccfb0b6ba4dbc13c93dcf12187b71",
	"r2-parallel-join-any.workflow.json":                "c6ad178d8f03f9e3981914bbb3e159ecc519661c543f031d2f006c22fa422006",
	"r2-parallel-join-n2-of-3.workflow.json":            "ed909e2685fba288b9755d777f14e559844ff4e4f6400f6d58f273d472cbcbeb",
	"r2-research-parallel.workflow.json":                "e6c2e42e46ef4250aec916290e63412cbda610e5b6855dfb4e66b64debc4889f",
	"r3-multi-agent-coding.workflow.json":               "e4ddde06719846e58789816b691ec1492f79c59ca504c017036e458ddd10432b",
	"r3-unit-tests-child.workflow.json":                 "ba289b582bd7dbcc4720e32c3d1b5332f11a07eb18e02de243220cde9208914a",
	"fixtures.valid/minimal-linear.workflow.json":       "5ccd6bf92db5a724d58c9ddd84aeabaa8eb147906aba3d188a6bcbad2e3a287e",
}

// examplesDir holds the protocol's example documents; they are not part of this repository.
const examplesDir = "../../../shared/awp-v1/examples"

func TestExampleHashes(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(examplesDir); err != nil {
		t.Skipf("the protocol's data (../shared/awp-v1 beside the repository) is absent: %v", err)
	}
	for name, hash := range exampleHashes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(examplesDir, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			n, problems := jsonvalue.Parse(text, 0, 0, "precision")
			if len(problems) > 0 {
				t.Fatalf("Parse: %v", problems)
			}
			if got := jsonvalue.Hash(n.Value()); got != hash {
				t.Errorf("hash %s, want %s", got, hash)
			}
			decoded, err := jsonvalue.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := jsonvalue.Hash(decoded); got != hash {
				t.Errorf("hash of what Decode reads %s, want %s", got, hash)
			}
		})
	}
}

// TestCanonicalTextIsNotThatOfEncodingJSON guards the reason for having a writer: a document of the protocol itself
// that the standard encoder would give another hash.
func TestCanonicalTextIsNotThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	v := map[string]any{"when": ".score > 1"}
	standard, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(jsonvalue.Canonical(v)); got != `{"when":".score > 1"}` || got == string(standard) {
		t.Errorf("canonical text %s, encoding/json %s", got, standard)
	}
}
