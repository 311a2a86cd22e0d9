package main

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"fmt"
)

// universal joins programs for macOS on different processors into one file; macOS starts the part for its processor.
func universal(programs [][]byte) ([]byte, error) {
	const align = 14 // parts begin at multiples of 1<<14, the largest page
	header := binary.BigEndian.AppendUint32(nil, macho.MagicFat)
	header = binary.BigEndian.AppendUint32(header, uint32(len(programs)))
	offset := 1 << align
	var parts []byte
	for _, p := range programs {
		f, err := macho.NewFile(bytes.NewReader(p))
		if err != nil {
			return nil, fmt.Errorf("a program for macOS: %w", err)
		}
		for _, field := range []uint32{uint32(f.Cpu), f.SubCpu, uint32(offset + len(parts)), uint32(len(p)), align} {
			header = binary.BigEndian.AppendUint32(header, field)
		}
		parts = append(parts, p...)
		parts = append(parts, make([]byte, -len(parts)&(1<<align-1))...)
	}
	return append(append(header, make([]byte, offset-len(header))...), parts...), nil
}
