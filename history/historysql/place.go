package historysql

import (
	"reflect"
	"unsafe"
)

// place is where a value is in memory. Two values in one place are one value, as long as both are alive and nobody
// changes them.
type place struct {
	at  uintptr
	len int
}

// placeOf is zero for what is empty.
func placeOf(v any) place {
	switch v := v.(type) {
	case string:
		if len(v) > 0 {
			return place{uintptr(unsafe.Pointer(unsafe.StringData(v))), len(v)}
		}
	case []any:
		if len(v) > 0 {
			return place{uintptr(unsafe.Pointer(unsafe.SliceData(v))), len(v)}
		}
	case map[string]any:
		if len(v) > 0 {
			return place{reflect.ValueOf(v).Pointer(), len(v)}
		}
	}
	return place{}
}
