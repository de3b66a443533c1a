/* Callbacks that are compiled, around one of ctypes: what those do after the interpreter's end, with
 * an exception in flight or with the GIL held cannot be planted in Python. */

#include <stdlib.h>

int Py_IsInitialized(void);
int PyGILState_Check(void);
int PyGILState_Ensure(void);
void PyGILState_Release(int);
void PyErr_Fetch(void **, void **, void **);
void PyErr_Restore(void *, void *, void *);
void PyErr_Clear(void);
void *PyErr_Occurred(void);
void *PyErr_NoMemory(void);

void (*next)(void *);

/* Correct. */
void keeps(void *argument) {
    if (!Py_IsInitialized())
        return;
    int gil = PyGILState_Ensure();
    void *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    next(argument);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
}

void clears(void *argument) {
    if (!Py_IsInitialized())
        return;
    int gil = PyGILState_Ensure();
    PyErr_Clear();
    next(argument);
    PyGILState_Release(gil);
}

void replaces(void *argument) {
    if (!Py_IsInitialized())
        return;
    int gil = PyGILState_Ensure(), was_set = PyErr_Occurred() != NULL;
    PyErr_Clear();
    next(argument);
    if (was_set)
        PyErr_NoMemory();
    PyGILState_Release(gil);
}

void leaves_one(void *argument) {
    int held = Py_IsInitialized() && PyGILState_Check();
    keeps(argument);
    if (held)
        PyErr_NoMemory();
}


/* It would wait for ever: a crash is found sooner. */
void fails_with_gil(void *argument) {
    if (Py_IsInitialized() && PyGILState_Check())
        abort();
    keeps(argument);
}

void fails_after_the_end(void *argument) {
    if (!Py_IsInitialized())
        abort();
    keeps(argument);
}
