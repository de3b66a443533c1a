//! Tests of concatenated and interleaved columns.

use arrow_buffer::NullBuffer;

use super::super::{CellValues, Cells, FillBytes};
use super::{BOOL, Random, bytes_of, concatenate, dtype, interleave, words};
use crate::ffi::DLDataType;
use crate::{Error, Number};

const ITEM: FillBytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// A dtype for each item size.
fn dtypes() -> [(DLDataType, usize); 6] {
    let complex = |bits| dtype(5, bits);
    [
        (dtype(1, 8), 1),
        (dtype(4, 16), 2),
        (dtype(2, 32), 4),
        (complex(64), 8),
        (complex(128), 16),
        (dtype(17, 4), 1),
    ]
}

/// Cuts `len` into parts, some of them empty.
fn cuts(random: &mut Random, len: usize) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = (0..random.below(6)).map(|_| random.below(len + 1)).collect();
    ends.extend([0, len, len]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn filled(bytes: &[u8], size: usize, nulls: &NullBuffer) -> Vec<u8> {
    let cells = bytes.chunks_exact(size).enumerate();
    cells
        .flat_map(|(row, cell)| if nulls.is_null(row) { &ITEM[..size] } else { cell })
        .copied()
        .collect()
}

#[test]
fn booleans_of_any_offset_become_bytes_or_numbers() {
    let mut random = Random(11);
    for offset in (0..=65).step_by(if cfg!(miri) { 13 } else { 1 }) {
        for len in [0, 1, 7, 8, 63, 64, 65, 200] {
            let bits = random.bits(offset, len, |random| random.below(2) == 0);
            let cells = Cells { values: CellValues::Bits(&bits), nulls: None };
            let bytes = bytes_of(concatenate(&[cells], BOOL, None).expect("they fit"));
            assert!(bytes.iter().copied().eq(bits.iter().map(u8::from)), "{offset} {len}");
            let floats =
                bytes_of(concatenate(&[cells], DLDataType::FLOAT32, None).expect("they fit"));
            let expected = bits.iter().flat_map(|bit| f32::from(u8::from(bit)).to_ne_bytes());
            assert!(floats.into_iter().eq(expected), "{offset} {len}");
        }
    }
}

#[test]
fn booleans_in_bytes_are_made_0_or_1() {
    let bytes = [0, 1, 2, 128, 255, 0];
    for to in [BOOL, DLDataType::UINT8] {
        let ones = concatenate(&[words(&bytes, BOOL, None)], to, None).expect("they fit");
        assert_eq!(bytes_of(ones), [0, 1, 1, 1, 1, 0]);
    }
    let wide =
        concatenate(&[words(&bytes, BOOL, None)], DLDataType::INT16, None).expect("they fit");
    assert_eq!(bytes_of(wide), [0i16, 1, 1, 1, 1, 0].map(i16::to_ne_bytes).concat());
}

#[test]
fn nulls_of_any_offset_become_the_item() {
    let mut random = Random(12);
    for (dtype, size) in dtypes() {
        for offset in (0..=65).step_by(if cfg!(miri) { 13 } else { 1 }) {
            for one_in in [1, 2, 10, 1000] {
                let len = [0, 1, 63, 64, 65, 130, 700][random.below(7)];
                let bytes = random.bytes(len * size);
                let nulls = random.nulls(offset, len, one_in);
                let cells = words(&bytes, dtype, Some(&nulls));
                let found = concatenate(&[cells], dtype, Some(&ITEM)).expect("same dtype");
                assert_eq!(bytes_of(found), filled(&bytes, size, &nulls), "{dtype} {offset} {len}");
                let kept = concatenate(&[cells], dtype, None).expect("same dtype");
                assert_eq!(bytes_of(kept), bytes);
            }
        }
    }
}

#[test]
fn chunks_lie_one_behind_the_other() {
    let mut random = Random(13);
    for (dtype, size) in dtypes() {
        for rows in [0, 1, 100, if cfg!(miri) { 300 } else { 20_000 }] {
            let bytes = random.bytes(rows * size + 1);
            let bytes = &bytes[1..];
            let nulls = random.nulls(3, rows, 5);
            let parts: Vec<_> = cuts(&mut random, rows)
                .into_iter()
                .map(|(start, end)| {
                    (&bytes[start * size..end * size], nulls.slice(start, end - start))
                })
                .collect();
            let chunks: Vec<_> =
                parts.iter().map(|(bytes, nulls)| words(bytes, dtype, Some(nulls))).collect();
            let found = concatenate(&chunks, dtype, Some(&ITEM)).expect("same dtype");
            assert_eq!(bytes_of(found), filled(bytes, size, &nulls), "{dtype} {rows}");
        }
    }
}

#[test]
fn columns_lie_side_by_side() {
    let mut random = Random(14);
    for (dtype, size) in dtypes() {
        for count in [0, 1, 2, 3, 4, 7, 8, 13, 33].into_iter().take(if cfg!(miri) { 6 } else { 9 })
        {
            for rows in [0, 1, 65, 9000].into_iter().take(if cfg!(miri) { 3 } else { 4 }) {
                interleave_wide(&mut random, (dtype, size), count, rows);
            }
        }
    }
}

/// Whole lines go past the caches, from where the rows end with a line; other rows are staged.
#[test]
#[cfg_attr(miri, ignore = "Miri does not know stores past the caches, and these results are large")]
fn columns_lie_side_by_side_in_large_results() {
    let mut random = Random(16);
    let [_, _, words, pairs, wide, _] = dtypes();
    for (of, bytes) in [(words, 64), (words, 68), (pairs, 128), (wide, 64)] {
        interleave_wide(&mut random, of, bytes / of.1, (16 << 20) / bytes + 5);
    }
}

/// The last strip overlaps the one before, and the last rows of a register overlap the rows before.
#[test]
fn columns_lie_side_by_side_in_wide_rows() {
    let mut random = Random(15);
    for (dtype, size) in dtypes() {
        // Miri takes seconds per hundred cells, and this is safe code: one size is enough.
        if cfg!(miri) && size != 16 {
            continue;
        }
        let sizes = [(520_usize, 17), (512, 15), (513, 16), (575, 31), (520, 2049)];
        for (bytes, rows) in sizes.into_iter().take(if cfg!(miri) { 1 } else { 5 }) {
            interleave_wide(&mut random, (dtype, size), bytes.div_ceil(size), rows);
        }
    }
}

/// Where a large result is cut to blocks, the last rows are not so few that they fill no register.
#[test]
#[cfg_attr(miri, ignore = "these results are large")]
fn columns_lie_side_by_side_in_blocks() {
    let mut random = Random(17);
    let [bytes, _, words, pairs, ..] = dtypes();
    for (of, row, rows) in
        [(words, 520, 8195), (pairs, 520, 8193), (bytes, 520, 8207), (words, 64, 65537)]
    {
        interleave_wide(&mut random, of, row / of.1, rows);
    }
}

fn interleave_wide(
    random: &mut Random,
    (dtype, size): (DLDataType, usize),
    count: usize,
    rows: usize,
) {
    let columns: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(rows * size)).collect();
    let nulls: Vec<NullBuffer> = (0..count).map(|column| random.nulls(column, rows, 3)).collect();
    let parts: Vec<Vec<_>> = (0..count)
        .map(|column| {
            let cuts = cuts(random, rows).into_iter();
            cuts.map(|(start, end)| {
                let bytes = &columns[column][start * size..end * size];
                // Every other column has no nulls, so that it is borrowed.
                let nulls = nulls[column].slice(start, end - start);
                (bytes, (column % 2 == 1).then_some(nulls))
            })
            .collect()
        })
        .collect();
    let chunks: Vec<Vec<_>> = parts
        .iter()
        .map(|parts| {
            parts.iter().map(|(bytes, nulls)| words(bytes, dtype, nulls.as_ref())).collect()
        })
        .collect();
    let columns: Vec<Vec<u8>> = columns
        .iter()
        .enumerate()
        .map(
            |(column, bytes)| {
                if column % 2 == 1 { filled(bytes, size, &nulls[column]) } else { bytes.clone() }
            },
        )
        .collect();
    let expected: Vec<u8> = (0..rows)
        .flat_map(|row| columns.iter().flat_map(move |bytes| &bytes[row * size..(row + 1) * size]))
        .copied()
        .collect();
    let found = interleave(&chunks, rows, dtype, Some(&ITEM)).expect("same dtype");
    assert!(bytes_of(found) == expected, "{dtype} {count} {rows}");
}

#[test]
fn columns_of_several_dtypes_become_one() {
    let bits = NullBuffer::from(vec![true, false, true]).into_inner();
    let ints = [1i64, 2, 3].map(i64::to_ne_bytes).concat();
    let bytes = [4u8, 5, 6];
    let codes = [0x38u8, 0xB8, 0x40];
    let columns = [
        vec![words(&ints, DLDataType::INT64, None)],
        vec![
            words(&bytes[..1], DLDataType::UINT8, None),
            words(&ints[8..], DLDataType::INT64, None),
        ],
        vec![Cells { values: CellValues::Bits(&bits), nulls: None }],
        vec![words(&codes, dtype(10, 8), None)],
    ];
    let found = interleave(&columns, 3, DLDataType::FLOAT64, None).expect("they fit");
    let expected = [1.0f64, 4.0, 1.0, 1.0, 2.0, 2.0, 0.0, -1.0, 3.0, 3.0, 1.0, 2.0];
    assert_eq!(bytes_of(found), expected.map(f64::to_ne_bytes).concat());
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and looks at numbers, not at memory")]
fn a_value_that_does_not_fit_is_found_in_wide_rows() {
    let good = [1i16; 40].map(i16::to_ne_bytes).concat();
    let mut bad = good.clone();
    bad[2 * 39..].copy_from_slice(&300i16.to_ne_bytes());
    for column in [0, 63, 64, 530, 599] {
        let cells = |at| words(if at == column { &bad } else { &good }, DLDataType::INT16, None);
        let columns: Vec<_> = (0..600).map(|at| vec![cells(at)]).collect();
        let misfit = Error::ValueDoesNotFit {
            value: Number::Int(300),
            dtype: DLDataType::INT8,
            column,
            row: 39,
        };
        assert_eq!(interleave(&columns, 40, DLDataType::INT8, None).err(), Some(misfit));
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and looks at numbers, not at memory")]
fn a_value_that_does_not_fit_is_found_where_it_is() {
    const ROWS: usize = 10_000;
    let misfit = |row, column| Error::ValueDoesNotFit {
        value: Number::Int(300),
        dtype: DLDataType::INT8,
        column,
        row,
    };
    for row in [0, 1, 63, 64, 4095, 4096, 9_998, 9_999] {
        let values = |at: usize| -> Vec<u8> {
            (0..ROWS).flat_map(|row| if row == at { 300i16 } else { -1 }.to_ne_bytes()).collect()
        };
        let (bad, good) = (values(row), values(ROWS));
        let halves = |bytes| -> Vec<_> {
            let (head, tail): (&[u8], &[u8]) = <[u8]>::split_at(bytes, 2 * 5000);
            vec![words(head, DLDataType::INT16, None), words(tail, DLDataType::INT16, None)]
        };
        let columns = [vec![words(&good, DLDataType::INT16, None)], halves(&bad), halves(&good)];
        assert_eq!(concatenate(&columns[1], DLDataType::INT8, None).err(), Some(misfit(row, 0)));
        assert_eq!(interleave(&columns, ROWS, DLDataType::INT8, None).err(), Some(misfit(row, 1)));

        // A value that does not fit is ignored under a null.
        let nulls: NullBuffer = (0..ROWS).map(|at| at != row).collect::<Vec<_>>().into();
        let hidden = words(&bad, DLDataType::INT16, Some(&nulls));
        let found = concatenate(&[hidden], DLDataType::INT8, Some(&ITEM)).expect("hidden");
        let mut expected = vec![255; ROWS];
        expected[row] = ITEM[0];
        assert_eq!(bytes_of(found), expected);
        assert!(concatenate(&[hidden], DLDataType::INT8, None).is_ok());
        // Any other one is an error.
        let nulls: NullBuffer =
            (0..ROWS).map(|at| at != row.abs_diff(1)).collect::<Vec<_>>().into();
        let beside = words(&bad, DLDataType::INT16, Some(&nulls));
        assert_eq!(
            concatenate(&[beside], DLDataType::INT8, Some(&ITEM)).err(),
            Some(misfit(row, 0))
        );
    }
}
