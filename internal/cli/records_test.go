package cli

import (
	"bytes"
	"testing"
)

func TestWriteRecordTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeRecordTable(&out, sampleRecords(), true); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "history", out.String())
}

func TestWriteRecordLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeRecordLines(&out, "r1", sampleRecords()[:2]); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "history_json", out.String())
}
