package scenario_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// An earlier build can be whatever an arm's last one can be, but for what only a candidate or a run's last build is; a field that one of the
// two types gets, the other gets, too.
func TestAnEarlierBuildHasTheFieldsOfASource(t *testing.T) {
	own := []string{"Before", "Commit", "Fork", "Image", "NodeImage", "Patch", "PatchSum", "Ref", "Release"}
	source, earlier := reflect.TypeFor[scenario.Source](), reflect.New(reflect.TypeFor[scenario.Earlier]()).Elem()
	for i := range source.NumField() {
		f := source.Field(i)
		in, has := earlier.Type().FieldByName(f.Name)
		if has == slices.Contains(own, f.Name) || has && (in.Type != f.Type || in.Tag.Get("json") != f.Tag.Get("json")) {
			t.Errorf("Source has %s %s, and Earlier %v", f.Name, f.Type, in)
		}
		if !has {
			continue
		}
		switch v := earlier.FieldByName(f.Name); v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
		default:
			t.Errorf("%s is of no type that this test can fill", f.Name)
		}
	}
	got := reflect.ValueOf(earlier.Interface().(scenario.Earlier).Source())
	for i := range earlier.NumField() {
		if name := earlier.Type().Field(i).Name; got.FieldByName(name).IsZero() {
			t.Errorf("Earlier.Source leaves %s out", name)
		}
	}
}
